"""A watch of the metadata store in memory: one listener on one path. Owns that value alone."""

from __future__ import annotations

from collections.abc import Callable


class MemoryWatch:
    """One listener on one path; calls that are not made yet are merged."""

    def __init__(self, path: str, children: bool, listener: Callable[[], None]) -> None:
        self.path = path
        self.children = children
        self._listener = listener
        self.is_scheduled = False

    def __repr__(self) -> str:
        return f"MemoryWatch({self.path}, {'children' if self.children else 'data'})"

    def call(self) -> None:
        self.is_scheduled = False
        self._listener()
