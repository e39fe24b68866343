"""Finds Kafka's frames in a stream of bytes: where each ends, and which API it belongs to. Pure; moves no bytes.

A frame is a length of four bytes, and that many bytes. A request begins with its API key, its version and a correlation
id. A response begins with the correlation id alone, so its API must be remembered from the request. Owns that. Does not
own what is done to a frame (``toxics.frames``). Not in Toxiproxy (docs/proxy.md "Frames").
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from chaos.proxy.pipe import PipeDirection

_Value = TypeVar("_Value")
_SIZE = struct.Struct(">i")

#: Larger than any Kafka frame. A stream with a larger length is another protocol, or is encrypted.
MAX_FRAME_BYTES = 1 << 30
#: The most requests of a connection that are remembered until their responses come. The oldest is forgotten first.
MAX_REMEMBERED = 1024

#: The number of bytes, including the length, that must be seen to know the header of a frame.
HEADER_BYTES = {PipeDirection.UPSTREAM: 12, PipeDirection.DOWNSTREAM: 8}


class FrameHeader(NamedTuple):
    """The header of a frame. ``size_bytes`` includes the length field. ``api_key`` is None for a response."""

    size_bytes: int
    api_key: int | None
    correlation_id: int


def read_header(head: bytes | bytearray | memoryview) -> FrameHeader | None:
    """The header in the first ``HEADER_BYTES`` of a frame; None if this cannot be a Kafka frame."""
    size = int.from_bytes(head[:4], "big", signed=True)
    if not len(head) - 4 <= size <= MAX_FRAME_BYTES:
        return None
    api_key = (
        int.from_bytes(head[4:6], "big", signed=True) if len(head) == HEADER_BYTES[PipeDirection.UPSTREAM] else None
    )
    return FrameHeader(size + 4, api_key, int.from_bytes(head[-4:], "big", signed=True))


@dataclass(slots=True)
class FrameTally:
    """The counts of one toxic, over all connections of its proxy: frames that matched, and frames that it acted on."""

    matched: int = 0
    acted: int = 0
    #: the API key of the last frame that it acted on, -1 if there is none
    last_api_key: int = -1
    #: the longest delay of a frame in ms, of those that have been passed on
    longest_ms: int = 0


@dataclass(slots=True)
class Dialogue:
    """Matches the responses of a connection to its requests.

    While ``is_followed``, the walks of both streams report each frame that passes, so that the API of responses is
    known. ``on_repeat`` is called before a request is sent a second time, so that the second response can be dropped.
    """

    is_followed: bool = False
    on_repeat: Callable[[], None] = lambda: None
    _asked: dict[int, int] = field(default_factory=dict)
    #: correlation id -> whether the first of two responses has passed
    _repeated: dict[int, bool] = field(default_factory=dict)

    def request_passed(self, header: FrameHeader) -> None:
        """Note that a request was passed to the server."""
        if header.api_key is not None:
            _remember(self._asked, header.correlation_id, header.api_key)

    def answer_passed(self, header: FrameHeader) -> None:
        """Note that a response was passed to the client."""
        self._asked.pop(header.correlation_id, None)

    def api_key_of(self, header: FrameHeader) -> int | None:
        """The API key of a frame; None for a response whose request passed before frames were followed."""
        return self._asked.get(header.correlation_id) if header.api_key is None else header.api_key

    def repeat(self, header: FrameHeader) -> None:
        """Note that a request is about to be sent twice."""
        _remember(self._repeated, header.correlation_id, False)
        self.on_repeat()

    def is_surplus(self, header: FrameHeader) -> bool:
        """Whether this is the second response to a request that was sent twice. To be called once per response."""
        came = self._repeated.get(header.correlation_id)
        if came is None:
            return False
        if came:
            del self._repeated[header.correlation_id]
        else:
            self._repeated[header.correlation_id] = True
        return came


class FrameWalk:
    """Tracks the position of a stream in its frames, from all bytes that pass, in pieces of any size.

    ``left`` is how many bytes of the current frame are still to come. ``head`` is the part of the next header that has
    come. ``framed`` is False if the stream is not Kafka's protocol.
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
        """Note that these bytes passed. Called for each piece of each connection, so it parses only what is needed."""
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
