"""Chunks of bytes, the bounded queues between toxics, and the counters of one stream. Pure: no socket, no clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple

#: Toxiproxy reads at most this much at once; a toxic never sees a larger chunk.
CHUNK_BYTES = 32 * 1024
#: Chunks a pipe takes before the stage before it must wait.
DEFAULT_CAPACITY = 8


class PipeDirection(StrEnum):
    """Which way bytes flow: ``upstream`` is client to server, ``downstream`` is server to client."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


class Chunk(NamedTuple):
    """Some bytes and when they were received, in seconds of the loop's clock."""

    data: memoryview
    received_at: float


@dataclass(slots=True)
class StreamCounters:
    """Bytes of one stream since it began. ``bytes_in`` = out + dropped + discarded + what is held in pipes."""

    bytes_in: int = 0
    #: handed to the destination's socket
    bytes_out: int = 0
    #: swallowed by a toxic (timeout, limit_data, reset_peer)
    bytes_dropped: int = 0
    #: not delivered because the connection was closing or its destination gone
    bytes_discarded: int = 0

    def add(self, other: StreamCounters) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Pipe:
    """A queue of chunks between two stages, and the end of the stream after them."""

    __slots__ = ("capacity", "chunks", "ended", "held_bytes", "moves", "reset")

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self.capacity = capacity
        self.chunks: deque[Chunk] = deque()
        self.held_bytes = 0
        #: nothing more will be put in
        self.ended = False
        #: the end is a reset, not an orderly close
        self.reset = False
        #: grows with every change, so that a pump sees whether anything moved
        self.moves = 0

    def __repr__(self) -> str:
        return f"Pipe({len(self.chunks)} chunks, {self.held_bytes} bytes{', ended' if self.ended else ''})"

    @property
    def full(self) -> bool:
        """Whether the stage before must wait. A pipe may hold more than its capacity; it is full until it does not."""
        return len(self.chunks) >= self.capacity

    @property
    def exhausted(self) -> bool:
        """Ended, and nothing left in it."""
        return self.ended and not self.chunks

    def push(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.held_bytes += len(chunk.data)
        self.moves += 1

    def pop(self) -> Chunk:
        chunk = self.chunks.popleft()
        self.held_bytes -= len(chunk.data)
        self.moves += 1
        return chunk

    def take(self, size_bytes: int) -> Chunk:
        """The first ``size_bytes`` of the first chunk; the rest of it stays first."""
        head = self.chunks[0]
        if size_bytes >= len(head.data):
            return self.pop()
        self.chunks[0] = Chunk(head.data[size_bytes:], head.received_at)
        self.held_bytes -= size_bytes
        self.moves += 1
        return Chunk(head.data[:size_bytes], head.received_at)

    def end(self, *, reset: bool = False) -> None:
        """Say that nothing more comes. A second call changes nothing."""
        if not self.ended:
            self.ended = True
            self.reset = reset
            self.moves += 1

    def clear(self) -> int:
        """Forget what is held; returns how many bytes that was."""
        lost = self.held_bytes
        if self.chunks:
            self.chunks.clear()
            self.held_bytes = 0
            self.moves += 1
        return lost

    def absorb(self, behind: Pipe) -> int:
        """Take over the chunks of the pipe behind, when the stage between them is gone.

        Returns the bytes that are lost because this end was closed already: 0 unless a toxic ended the stream.
        """
        if self.ended:
            return behind.clear()
        self.chunks.extend(behind.chunks)
        self.held_bytes += behind.held_bytes
        self.moves += 1
        behind.clear()
        if behind.ended:
            self.end(reset=behind.reset)
        return 0
