"""One hostile frame for each seed: a well-formed request of some API and version, with one thing wrong in it.

Owns the kinds of mutation and the choice among them; the same seed makes the same bytes. Does not own what well-formed
requests look like (``grammar``), what damaged records do (``batches``), nor sending.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.messages import decode_request, parse_request_header, request_class
from cluster.protocol.primitives import write_uvarint
from tests.cluster.protocol.malformed import LIES
from tests.hostile.batches import draw_damaged, draw_good, extremes
from tests.hostile.grammar import (
    CONTENT,
    COUNT,
    INTEGER,
    LENGTH,
    TAGS,
    Elements,
    Part,
    Request,
    packed_size,
    request,
    windows,
)

#: Of a list that is repeated: never more bytes than this.
MOST_REPEATED_BYTES = 262_144
_HEADER_PARTS = 3
#: Varints that are likeliest to be mistaken: of lengths and counts, one more than they say.
_VARINTS = (0, 1, 2, 127, 128, 255, 256, 16_384, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 35, (1 << 64) - 1)
_TEXTS = (
    b"",
    b"\0",
    b"..",
    b"a" * 249,
    b"a" * 250,
    b"x" * 32_767,
    b"\xff\xfe\xc3",
    b"\xed\xa0\x80",
    b"\r\n2026-01-01 CRITICAL \x1b[31m",
    b"\xe2\x80\xae" * 9,
    b"../../etc",
    b"%s%n{0}",
    b" " * 5000 + b"1",
    b"9" * 400,
    b"1e308",
    b"nan",
)


@dataclass(slots=True)
class Hostile:
    """One mutated request. ``wire`` begins with its size; nothing can follow on its connection if it ``ends`` it."""

    seed: int
    listener: str
    api_key: ApiKey
    version: int
    kind: str
    wire: bytes
    ends: bool = False

    def __repr__(self) -> str:
        return (
            f"seed {self.seed}: {self.api_key.name} {self.version} on {self.listener}, {self.kind}, {len(self.wire)} B"
        )


@cache
def targets() -> tuple[tuple[str, ApiKey, range], ...]:
    """Every API on every listener; Produce several times, for most of what can be wrong is in its records."""
    found = [(name, key, versions) for name in ("CLIENTS", "PEERS") for key, versions in windows(name).items()]
    return tuple(each for each in found for _ in range(4 if each[1] is ApiKey.PRODUCE else 1))


def good(seed: int) -> Hostile:
    """A request of the same listener, API and version as the frame of a seed, with nothing wrong in it."""
    draw = Random(seed)
    while True:
        listener, made = _well_formed(seed, draw)
        found = _as_sent(seed, listener, made, "good", made.frame())
        if not is_order(found.wire):
            return found


def hostile(seed: int) -> Hostile:
    """The frame of a seed."""
    draw = Random(seed)
    while True:
        listener, made = _well_formed(seed, draw)
        kinds = _PRODUCE_KINDS if made.api_key is ApiKey.PRODUCE else _KINDS
        mutated: _Mutated = None
        while mutated is None:  # There is nothing of that kind in this request.
            kind, mutate = draw.choice(kinds)
            mutated = mutate(made)
        found = _as_sent(seed, listener, made, kind, mutated)
        if not is_order(found.wire):
            return found


def _well_formed(seed: int, draw: Random) -> tuple[str, Request]:
    listener, key, versions = draw.choice(targets())
    return listener, request(key, draw.choice(versions), seed & 0x7FFFFFFF, draw)


def _as_sent(seed: int, listener: str, made: Request, kind: str, mutated: bytes | tuple[bytes, bool]) -> Hostile:
    wire, ends = mutated if isinstance(mutated, tuple) else (_sized(mutated), False)
    return Hostile(seed, listener, made.api_key, made.version, kind, wire, ends)


def is_order(wire: bytes) -> bool:
    """Whether a broker that obeys would rightly be another one afterwards: its own settings changed, or an order of its
    controller for this very life of it. Such a frame is well-formed, and what follows proves nothing.
    """
    frame = wire[4:]
    try:
        header = parse_request_header(frame)
        if header.api_key not in _ORDERS:
            return False
        message = decode_request(request_class(header.api_key), header.api_version, frame[header.body_offset :])
    except MalformedRequest:
        return False
    if header.api_key in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
        return not message.validate_only and any(each.resource_type != 2 for each in message.resources)
    return not (message.broker_epoch == 0 or message.broker_epoch < -1)


_ORDERS = {
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}


def _sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


# The kinds. Each returns the frame, or the wire and whether its connection ends with it, or None if it does not apply.

_Mutated = bytes | tuple[bytes, bool] | None


def _some(made: Request, *kinds: str) -> Part | None:
    found = [part for part in made.parts[_HEADER_PARTS:] if part.kind in kinds]
    return made.draw.choice(found) if found else None


def _extreme(made: Request) -> _Mutated:
    for _ in range(made.draw.choice((1, 1, 2, 5))):
        part = _some(made, INTEGER)
        if part is None:
            return None
        part.data = struct.pack(f">{part.code}", made.draw.choice(extremes(part.code)))
    return made.frame()


def _every_integer(made: Request) -> _Mutated:
    """All numbers of one size at one extreme."""
    numbers = [part for part in made.parts[_HEADER_PARTS:] if part.kind == INTEGER]
    if not numbers:
        return None
    index = made.draw.randrange(100)
    for part in numbers:
        values = extremes(part.code)
        part.data = struct.pack(f">{part.code}", values[index % len(values)])
    return made.frame()


def _lie(made: Request) -> _Mutated:
    part = _some(made, LENGTH, COUNT)
    if part is None:
        return None
    draw = made.draw
    if part.code == "u":
        part.data = draw.choice((write_uvarint(draw.choice(_VARINTS)), draw.choice(LIES)))
    else:
        part.data = struct.pack(f">{part.code}", draw.choice(extremes(part.code)))
    return made.frame()


def _cut(made: Request) -> _Mutated:
    frame = made.frame()
    return frame[: made.draw.randrange(len(frame))]


def _cut_at_part(made: Request) -> _Mutated:
    parts = [part.data for part in made.parts]
    return b"".join(parts[: made.draw.randrange(len(parts))])


def _repeat(made: Request) -> _Mutated:
    if not made.lists:
        return None
    _repeat_elements(made, made.draw.choice(made.lists), made.draw.choice((2, 2, 3, 10, 100, 1000, 10_000)))
    return made.frame()


def _repeat_all(made: Request) -> _Mutated:
    """Every list's first element some times more, the inner ones first: they are repeated with the outer ones."""
    if not made.lists:
        return None
    times = made.draw.choice((2, 3, 10))
    for found in sorted(made.lists, key=lambda each: each.begin - each.end):
        _repeat_elements(made, found, times)
    return made.frame()


def _repeat_elements(made: Request, found: Elements, times: int) -> None:
    element = b"".join([part.data for part in made.parts[found.begin : found.end]])
    times = min(times, MOST_REPEATED_BYTES // max(1, len(element)))
    if times > 0:
        # Behind the first one's own parts, so that no place of another list moves.
        made.parts[found.end - 1].data += element * times
        counter = made.parts[found.count_at]
        counter.data = packed_size(found.count + times, "i", counter.code == "u")


def _tags(made: Request) -> _Mutated:
    part = _some(made, TAGS)
    if part is None:
        return None
    draw = made.draw
    tags = [draw.choice((0, 1, 2, 3, 100, 16_384, (1 << 31) - 1)) for _ in range(draw.choice((1, 2, 3)))]
    if draw.random() < 0.6:
        tags = sorted({*tags})
    if draw.random() < 0.1:
        tags = [*range(5, 2000)]
    content = draw.choice((b"", b"\0", b"x" * 200, b"\xff" * 9, b"hostile"))
    data = b"".join(write_uvarint(tag) + write_uvarint(len(content)) + content for tag in tags)
    count = draw.choice((len(tags), len(tags), len(tags), len(tags) + 1, draw.choice(_VARINTS)))
    part.data = write_uvarint(count) + data
    return made.frame()


def _text(made: Request) -> _Mutated:
    """A text or some bytes that are well counted, and nothing that anybody would send."""
    parts = made.parts
    lengths = [at for at, part in enumerate(parts) if part.kind == LENGTH]
    if not lengths:
        return None
    at = made.draw.choice(lengths)
    parts[at + 1].data = text = made.draw.choice(_TEXTS)
    parts[at].data = packed_size(len(text), parts[at].code, parts[at].code == "u")
    return made.frame()


def _records(made: Request) -> _Mutated:
    places = [at for at, part in enumerate(made.parts) if part.kind == CONTENT and part.code == "records"]
    for at in places:
        length, content = made.parts[at - 1], made.parts[at]
        content.data = draw_damaged(made.draw) if made.draw.random() < 0.9 else draw_good(made.draw)[:-1]
        length.data = packed_size(len(content.data), "i", length.code == "u")
    return made.frame() if places else None


def _version(made: Request) -> _Mutated:
    made.parts[1].data = struct.pack(">h", made.draw.choice((*range(-1, 16), -32_768, 32_767)))
    return made.frame()


def _api(made: Request) -> _Mutated:
    made.parts[0].data = struct.pack(">h", made.draw.choice((*range(-1, 93), -32_768, 32_767)))
    return made.frame()


def _shuffle(made: Request) -> _Mutated:
    draw, parts = made.draw, made.parts
    if len(parts) <= _HEADER_PARTS:
        return None
    one, other = draw.randrange(_HEADER_PARTS, len(parts)), draw.randrange(_HEADER_PARTS, len(parts))
    match draw.randrange(3):
        case 0:
            parts[one], parts[other] = parts[other], parts[one]
        case 1:
            del parts[one]
        case _:
            parts.insert(one, parts[other])
    return made.frame()


def _flip(made: Request) -> bytes:
    draw, frame = made.draw, bytearray(made.frame())
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(min(8, len(frame) - 1), len(frame))
        frame[at] ^= 1 << draw.randrange(8)
    return bytes(frame)


def _garbage_inside(made: Request) -> _Mutated:
    return made.frame() + made.draw.choice((b"\0", b"\0\0\0", b"\xff" * 40, made.draw.randbytes(300)))


def _garbage_after(made: Request) -> _Mutated:
    # Taken for a size and what comes after it: a broker may wait for more, and closes when there is none.
    return _sized(made.frame()) + made.draw.randbytes(made.draw.randrange(1, 40)), True


def _size(made: Request) -> _Mutated:
    frame, draw = made.frame(), made.draw
    sizes = (-1, -(2**31), 2**31 - 1, 104_857_601, 104_857_600, 0, 1, 7, len(frame) - 1, len(frame) + 1, 2 * len(frame))
    return struct.pack(">i", draw.choice(sizes)) + frame, True


def _half(made: Request) -> _Mutated:
    wire = _sized(made.frame())
    return wire[: made.draw.randrange(1, len(wire))], True


_KINDS: tuple[tuple[str, Callable[[Request], _Mutated]], ...] = (
    ("an extreme", _extreme),
    ("an extreme", _extreme),
    ("an extreme", _extreme),
    ("all at an extreme", _every_integer),
    ("a length that lies", _lie),
    ("a length that lies", _lie),
    ("cut", _cut),
    ("cut between fields", _cut_at_part),
    ("repeated", _repeat),
    ("repeated", _repeat),
    ("everything repeated", _repeat_all),
    ("tagged fields", _tags),
    ("tagged fields", _tags),
    ("a text", _text),
    ("a text", _text),
    ("another version", _version),
    ("another API", _api),
    ("fields moved", _shuffle),
    ("flipped bits", _flip),
    ("garbage inside", _garbage_inside),
    ("garbage after", _garbage_after),
    ("another size", _size),
    ("half a request", _half),
)
_PRODUCE_KINDS = (*_KINDS, *[("damaged records", _records)] * len(_KINDS))
