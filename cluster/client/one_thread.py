"""OneThread: an object that is for one thread at a time, and refuses the second. Owns who is in a call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OneThread:
    """``what`` is the object, for the error."""

    def __init__(self, what: str) -> None:
        self._what = what
        # The thread that is in a call, under one key: setting that is one step, which an exception cannot divide.
        self._inside: dict[str, int] = {}
        # Whether a callback of the program's runs in that call: it may make calls itself.
        self._calls_back = False

    def __repr__(self) -> str:
        return f"OneThread({self._what}, {'in' if self.is_busy else 'not in'} use)"

    @property
    def is_busy(self) -> bool:
        """Whether a thread is in a call."""
        return bool(self._inside)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """For the time of a call. Raises ``RuntimeError`` while another thread is in one."""
        me = threading.get_ident()
        is_outermost = not (self._calls_back and self._inside.get("thread") == me)
        if self._inside.setdefault("thread", me) != me:
            raise RuntimeError(f"{self._what} is not safe for multi-threaded access")
        try:
            yield
        finally:
            if is_outermost:
                self._calls_back = False
                self._inside.clear()

    @contextmanager
    def calling_back(self) -> Iterator[None]:
        """For the time of a callback, in a call: calls that it makes itself are part of that one."""
        was_calling_back, self._calls_back = self._calls_back, True
        try:
            yield
        finally:
            self._calls_back = was_calling_back
