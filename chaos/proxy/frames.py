"""Kafka's frames as a stream of bytes has them: where one ends, and which API it is about. Pure; moves no byte.

A frame is a length of four bytes and what it counts. A request then has its API key, its version and a correlation id;
an answer has the correlation id alone, so what it answers must be remembered from the request. Owns that. What is done
to a frame is owned by ``toxics.frames``. Ours, not Toxiproxy's (docs/proxy.md "Frames").
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from chaos.proxy.pipe import PipeDirection

_Value = TypeVar("_Value")
_SIZE = struct.Struct(">i")

#: Larger than any frame of Kafka's: what says so is another protocol, or is encrypted.
MAX_FRAME_BYTES = 1 << 30
#: Requests of a connection that are remembered until their answers come; the oldest gives way.
MAX_REMEMBERED = 1024

#: How much of a frame must be seen to judge it, its length included.
HEADER_BYTES = {PipeDirection.UPSTREAM: 12, PipeDirection.DOWNSTREAM: 8}


class FrameHeader(NamedTuple):
    """The beginning of a frame. ``size_bytes`` counts its length field too; an answer has no ``api_key`` of its own."""

    size_bytes: int
    api_key: int | None
    correlation_id: int


def read_header(head: bytes | bytearray | memoryview) -> FrameHeader | None:
    """The header in ``HEADER_BYTES`` bytes of its direction; None if this is no frame of Kafka's."""
    size = int.from_bytes(head[:4], "big", signed=True)
    if not len(head) - 4 <= size <= MAX_FRAME_BYTES:
        return None
    api_key = (
        int.from_bytes(head[4:6], "big", signed=True) if len(head) == HEADER_BYTES[PipeDirection.UPSTREAM] else None
    )
    return FrameHeader(size + 4, api_key, int.from_bytes(head[-4:], "big", signed=True))


@dataclass(slots=True)
class FrameTally:
    """What one toxic has seen of frames, over all connections of its proxy: how many matched, on how many it acted."""

    matched: int = 0
    acted: int = 0
    #: of the last frame that it acted on, -1 before
    last_api_key: int = -1
    #: how long the frame waited that waited the longest, of those that have moved on
    longest_ms: int = 0


@dataclass(slots=True)
class Dialogue:
    """What both streams of one connection must know of each other.

    ``is_followed``: someone wants to know what answers are about, and the walks of both streams say what passes.
    ``on_repeat`` is called before a request goes out again, so that someone is there to swallow the second answer.
    """

    is_followed: bool = False
    on_repeat: Callable[[], None] = lambda: None
    _asked: dict[int, int] = field(default_factory=dict)
    #: correlation id -> whether the first of two answers came by
    _repeated: dict[int, bool] = field(default_factory=dict)

    def request_passed(self, header: FrameHeader) -> None:
        """A request was passed to the server."""
        if header.api_key is not None:
            _remember(self._asked, header.correlation_id, header.api_key)

    def answer_passed(self, header: FrameHeader) -> None:
        """An answer was passed to the client."""
        self._asked.pop(header.correlation_id, None)

    def api_key_of(self, header: FrameHeader) -> int | None:
        """What a frame is about; None for the answer to a request that passed before anyone followed."""
        return self._asked.get(header.correlation_id) if header.api_key is None else header.api_key

    def repeat(self, header: FrameHeader) -> None:
        """A request is about to go out twice."""
        _remember(self._repeated, header.correlation_id, False)
        self.on_repeat()

    def is_surplus(self, header: FrameHeader) -> bool:
        """Whether this answer is the second one to a request that went out twice. Asked once for each answer."""
        came = self._repeated.get(header.correlation_id)
        if came is None:
            return False
        if came:
            del self._repeated[header.correlation_id]
        else:
            self._repeated[header.correlation_id] = True
        return came


class FrameWalk:
    """Where in its frames a stream is, told of all bytes that pass, cut anywhere.

    ``left`` bytes of a frame are still to come, or ``head`` is the part of a header that has come. Not ``framed``: the
    stream is not Kafka's.
    """

    __slots__ = ("_dialogue", "_header_bytes", "_seen", "framed", "head", "left")

    def __init__(self, direction: PipeDirection, dialogue: Dialogue) -> None:
        self.framed = True
        self.left = 0
        self.head = bytearray()
        self._header_bytes = HEADER_BYTES[direction]
        self._dialogue = dialogue
        self._seen = dialogue.request_passed if direction is PipeDirection.UPSTREAM else dialogue.answer_passed

    def __repr__(self) -> str:
        return f"FrameWalk({self.left} bytes left)" if self.framed else "FrameWalk(not framed)"

    def advance(self, data: bytes | memoryview) -> None:
        """These bytes passed. Called for every piece of every connection: it looks at nothing that no one wants."""
        if not self.framed:
            return
        end = len(data)
        if self.left >= end:
            self.left -= end
            return
        place, header_bytes = self.left, self._header_bytes
        while place < end:
            if self.head or end - place < header_bytes:
                step = min(header_bytes - len(self.head), end - place)
                self.head += data[place : place + step]
                if len(self.head) < header_bytes:
                    self.left = 0
                    return
                place += step - header_bytes
                head, self.head = bytes(self.head), bytearray()
                (size,) = _SIZE.unpack_from(head)
            else:
                head = None
                (size,) = _SIZE.unpack_from(data, place)
            if not header_bytes - 4 <= size <= MAX_FRAME_BYTES:
                self.framed = False
                return
            if self._dialogue.is_followed:
                header = read_header(data[place : place + header_bytes] if head is None else head)
                if header is not None:
                    self._seen(header)
            place += 4 + size
        self.left = place - end


def _remember(memory: dict[int, _Value], correlation_id: int, value: _Value) -> None:
    if len(memory) >= MAX_REMEMBERED:
        del memory[next(iter(memory))]
    memory[correlation_id] = value
