"""Chunks of bytes, the queues between toxics, and the counters of one stream. Pure: uses no socket and no clock.

Does not own when chunks move (``link``) or what toxics do with them (``toxics``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple

#: The largest chunk that a toxic sees, as in Toxiproxy.
CHUNK_BYTES = 32 * 1024
#: The number of chunks in a pipe at which the previous stage must wait.
DEFAULT_CAPACITY = 8


class PipeDirection(StrEnum):
    """The direction of bytes: ``upstream`` is from client to server, ``downstream`` from server to client."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


class Chunk(NamedTuple):
    """Some bytes, and when they were received, in seconds of the loop's clock."""

    data: memoryview
    received_at: float


@dataclass(slots=True)
class StreamCounters:
    """The bytes of one stream since it began. ``bytes_in`` = out + dropped + discarded + bytes held in pipes."""

    bytes_in: int = 0
    #: handed to the destination's socket
    bytes_out: int = 0
    #: dropped by a toxic (timeout, limit_data, reset_peer, toxics on frames)
    bytes_dropped: int = 0
    #: not delivered, because the connection was closing or its destination was lost
    bytes_discarded: int = 0

    def add(self, other: StreamCounters) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Pipe:
    """A queue of chunks between two stages, and then possibly the end of the stream."""

    __slots__ = ("capacity", "chunks", "ended", "held_bytes", "moves", "reset")

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self.capacity = capacity
        self.chunks: deque[Chunk] = deque()
        self.held_bytes = 0
        #: no chunk will follow
        self.ended = False
        #: the end is a reset, not an orderly close
        self.reset = False
        #: grows with every change, so that the pump sees whether anything moved
        self.moves = 0

    def __repr__(self) -> str:
        return f"Pipe({len(self.chunks)} chunks, {self.held_bytes} bytes{', ended' if self.ended else ''})"

    @property
    def full(self) -> bool:
        """Whether the previous stage must wait. A pipe may hold more chunks than its capacity."""
        return len(self.chunks) >= self.capacity

    @property
    def exhausted(self) -> bool:
        """Whether the stream has ended and no chunk is left."""
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
        """Remove and return the first ``size_bytes`` of the first chunk, or all of it if it is smaller."""
        head = self.chunks[0]
        if size_bytes >= len(head.data):
            return self.pop()
        self.chunks[0] = Chunk(head.data[size_bytes:], head.received_at)
        self.held_bytes -= size_bytes
        self.moves += 1
        return Chunk(head.data[:size_bytes], head.received_at)

    def end(self, *, reset: bool = False) -> None:
        """Mark the end of the stream. A second call changes nothing."""
        if not self.ended:
            self.ended = True
            self.reset = reset
            self.moves += 1

    def clear(self) -> int:
        """Remove all chunks; returns their bytes."""
        lost = self.held_bytes
        if self.chunks:
            self.chunks.clear()
            self.held_bytes = 0
            self.moves += 1
        return lost

    def absorb(self, behind: Pipe) -> int:
        """Take over the chunks of the previous pipe (``behind``), after the stage between both was removed.

        Returns the number of bytes that are lost because this pipe has ended already; 0 unless a toxic ended it.
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
