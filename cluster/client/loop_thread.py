"""LoopThread: an event loop in a thread of its own, for programs that have none. Who needs one at a time shares it.

Owns the thread, and its end with the last user. There is one for all because, where gevent has patched threads, they
are greenlets of one thread, in which asyncio lets a single loop run: a second would never begin. Does not own what runs
in it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class LoopThread:
    """From any thread but its own. Anyone who got it by ``join`` calls ``leave`` once."""

    _lock = threading.Lock()
    _shared: ClassVar[LoopThread | None] = None

    def __init__(self) -> None:
        self._users = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gapless-admin", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"LoopThread({self._users} users{'' if self.is_running else ', not running'})"

    @classmethod
    def join(cls) -> LoopThread:
        """The one that runs in this process, or a new one."""
        with cls._lock:
            shared = cls._shared
            if shared is None or not shared.is_running:
                shared = cls._shared = LoopThread()
            shared._users += 1
            return shared

    def leave(self) -> None:
        """It is not used anymore by one of those who did. The last one waits for its end."""
        with self._lock:
            self._users -= 1
            if self._users or not self.is_running:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            # Before another one begins.
            self._thread.join()
            self._loop.close()

    @property
    def is_running(self) -> bool:
        """Not so in a process that was forked off, nor under gevent while the program runs an event loop itself."""
        return self._thread.is_alive()

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """What comes of ``call``. Raises that, and ``RuntimeError`` if nothing runs here anymore."""
        if not self.is_running:
            call.close()
            raise RuntimeError(
                "the thread of this client does not run: after fork(), create a new client in the child process, and "
                "under gevent use AsyncAdmin where an event loop is running already"
            )
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            # Of no effect on a call that has failed; one that Ctrl-C left would be destroyed with the loop.
            future.cancel()
            raise
