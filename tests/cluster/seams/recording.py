"""A FrameHandler that writes down what happens to it, for the tests of both transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cluster.seams.transport import Connection


class Recorder:
    """Keeps copies of frames; ``changed`` can be awaited until a condition holds."""

    def __init__(self, connection: Connection, on_frame: Callable[[Recorder, memoryview], None] | None = None) -> None:
        self.connection = connection
        self.frames: list[bytes] = []
        self.eofs = 0
        self.closed: list[str] = []
        self._on_frame = on_frame
        self._changed = asyncio.Event()

    def on_frame(self, frame: memoryview) -> None:
        if self.closed:
            raise RuntimeError("a frame after on_closed")
        self.frames.append(bytes(frame))
        self._changed.set()
        if self._on_frame is not None:
            self._on_frame(self, frame)

    def on_eof(self) -> None:
        self.eofs += 1
        self._changed.set()

    def on_closed(self, reason: str) -> None:
        self.closed.append(reason)
        self._changed.set()

    async def until(self, condition: Callable[[Recorder], bool], timeout_s: float = 20) -> None:
        """Wait until ``condition(self)`` holds."""
        async with asyncio.timeout(timeout_s):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()


class Acceptor:
    """An AcceptHandler that remembers its handlers; ``first`` waits for one."""

    def __init__(self, on_frame: Callable[[Recorder, memoryview], None] | None = None) -> None:
        self.handlers: list[Recorder] = []
        self._on_frame = on_frame
        self._accepted = asyncio.Event()

    def __call__(self, connection: Connection) -> Recorder:
        self.handlers.append(Recorder(connection, self._on_frame))
        self._accepted.set()
        return self.handlers[-1]

    async def first(self) -> Recorder:
        async with asyncio.timeout(20):
            await self._accepted.wait()
        return self.handlers[0]


def echo(recorder: Recorder, frame: memoryview) -> None:
    """Answer each frame with a copy of itself."""
    recorder.connection.send_frame((bytes(frame),))
