"""Runner: what carries on a client's I/O beside the program, step by step. Owns the seam's shape and its threaded form.

A step may wait in ``Selector.poll``, so a client without an event loop gives its steps to a thread. The form on a loop,
for a selector that never waits, is ``cluster.seams.memory_selector.LoopRunner``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Protocol

#: Returns False after the last step.
RunnerStep = Callable[[], bool]


class Runner(Protocol):
    """Carries on one client."""

    def start(self, step: RunnerStep) -> None:
        """Call ``step`` again and again, until it returns False. Once."""
        ...

    @property
    def is_current(self) -> bool:
        """Whether the next step cannot come before the caller is done: waiting for one here would never end."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it was started and calls no more steps: after the last, and in a process that was forked off."""
        ...

    def join(self, timeout_s: float | None) -> bool:
        """Wait until the last step is over. False if time ran out."""
        ...


class ThreadRunner:
    """A thread of its own, a daemon.

    It says itself that it has ended. ``Thread.is_alive`` lets other greenlets run where gevent has patched threads, and
    if the caller is killed there, takes the thread for dead.
    """

    def __init__(self, name: str) -> None:
        self._step: RunnerStep = bool
        self._started_in: int | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __repr__(self) -> str:
        return f"ThreadRunner({self._thread.name})"

    def start(self, step: RunnerStep) -> None:
        self._step, self._started_in = step, os.getpid()
        self._thread.start()

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    @property
    def has_ended(self) -> bool:
        return self._is_over or self._started_in not in (None, os.getpid())

    def join(self, timeout_s: float | None) -> bool:
        self._thread.join(timeout_s)
        return self.has_ended

    def _run(self) -> None:
        step = self._step
        try:
            while step():
                pass
        finally:
            self._is_over = True
