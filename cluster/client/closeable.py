"""What is closed after use can be used by ``with``. Owns that for the clients of programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """Ends with ``close``, however the block ends."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give up connections and threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
