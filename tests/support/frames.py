"""Requests as real clients and brokers sent them, and what becomes of them when they are damaged.

Owns ``tests/testdata/captured_frames.jsonl``: taken off the listeners of a cluster of ours while confluent-kafka,
kafka-python, kcat, aiokafka, kafkajs and the brokers themselves used it, one frame a line, without its size prefix,
about topic ``TOPIC``. Does not own sending (``tests.support.attack``).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.messages import decode_request, encode_request, parse_request_header, request_class
from tests.cluster.protocol.malformed import LIES, mutations

#: The topic that the captured frames are about; it has four partitions.
TOPIC = "malformed"
PARTITIONS = 4
_FILE = Path(__file__).resolve().parents[1] / "testdata" / "captured_frames.jsonl"
#: Requests that change the cluster when they are obeyed.
_ORDERS = {
    ApiKey.CREATE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    *INTER_BROKER,
}
#: A size prefix above the limit, below nothing, and the largest that is believed.
_SIZES = (2**31 - 1, -(2**31), -1, 104_857_601, 104_857_600, 50_000_000)


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that was well-formed when it was sent."""

    api_key: ApiKey
    version: int
    between_brokers: bool
    frame: bytes


@cache
def captured() -> tuple[Sample, ...]:
    """The frames of the file."""
    rows = [json.loads(line) for line in _FILE.read_text().splitlines()]
    return tuple(
        Sample(ApiKey[row["api"]], row["version"], row["between_brokers"], bytes.fromhex(row["frame"])) for row in rows
    )


@cache
def samples() -> tuple[Sample, ...]:
    """The captured frames, and one of each API in all its other versions, as kafka-python encodes them."""
    found = list(captured())
    for api_key, (least, greatest) in SUPPORTED.items():
        known = {sample.version: sample for sample in reversed(found) if sample.api_key is api_key}
        newest = known[max(known)]
        header = parse_request_header(newest.frame)
        message = decode_request(request_class(api_key), newest.version, newest.frame[header.body_offset :])
        for version in range(max(least, PRODUCE_MIN_VERSION if api_key is ApiKey.PRODUCE else 0), greatest + 1):
            if version not in known:
                frame = encode_request(message, version, header.correlation_id, header.client_id)
                found.append(Sample(api_key, version, False, frame))
    return tuple(found)


def with_size(frame: bytes) -> bytes:
    """A frame as it goes over the wire."""
    return struct.pack(">i", len(frame)) + frame


def mutants(seed: int, between_brokers: bool) -> Iterator[bytes]:
    """Endless: what a damaged sender would put on a connection. ``between_brokers`` is the listener it is made for.

    Each API comes as often as any other, however many samples there are of it.
    """
    random = Random(f"{seed} {between_brokers}")
    by_api: dict[ApiKey, list[Sample]] = {}
    for sample in samples():
        if between_brokers or not sample.between_brokers:
            by_api.setdefault(sample.api_key, []).append(sample)
    groups = list(by_api.values())
    while True:
        frame = _damaged(random, random.choice(random.choice(groups)).frame)
        other = random.choice(random.choice(groups)).frame
        match random.randrange(8):
            case 0:  # The size is not the frame's.
                wire = struct.pack(">i", random.choice((*_SIZES, random.randrange(2 * len(frame) + 2)))) + frame
            case 1:  # The beginning of one and the end of another.
                wire = with_size(frame[: random.randrange(len(frame) + 1)] + other[random.randrange(len(other)) :])
            case 2:  # A good one before it: it must be answered, or the connection closed.
                wire = with_size(other) + with_size(frame)
            case 3:  # Cut off, after a size that promises all of it.
                wire = with_size(frame)
                wire = wire[: random.randrange(len(wire) + 1)]
            case _:
                wire = with_size(frame)
        if not any(is_order(part) for part in complete_frames(wire)):
            yield wire


def flip(frame: bytes, bit: int) -> bytes:
    """One bit of what stands after the header's key, version and correlation id (or of the frame, if it is shorter):
    often the request can still be read, and asks for something that no client would."""
    data = bytearray(frame)
    first = 8 if len(data) > 8 else 0
    at = first + bit // 8 % (len(data) - first)
    data[at] ^= 1 << bit % 8
    return bytes(data)


def _damaged(random: Random, frame: bytes) -> bytes:
    if random.random() < 0.4:
        return flip(frame, random.randrange(1 << 16))
    data = bytearray(frame)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at = random.randrange(len(data) + 1)
        match random.choice((0, 1, 1, 1, 1, 2, 3, 4, 5, 6)):
            case 0:
                del data[at:]
            case 1:
                data[at : at + 1] = (data[at] ^ 1 << random.randrange(8)).to_bytes() if at < len(data) else b"\0"
            case 2:
                lie = random.choice(LIES)
                data[at : at + len(lie)] = lie
            case 3:
                data[at:at] = random.randbytes(random.choice((1, 2, 4, 16, 300)))
            case 4:
                del data[at : at + random.randrange(1, 9)]
            case 5:
                data[at:at] = data[max(0, at - random.randrange(1, 65)) : at]
            case _:  # Another API or version than the body is for.
                data[:2] = struct.pack(">h", random.choice((*ApiKey, -1, 68, 32767)))
                data[2:4] = struct.pack(">h", random.randrange(-1, 14))
    return bytes(data)


def complete_frames(wire: bytes) -> list[bytes]:
    """The frames that a broker would see in these bytes."""
    found = []
    position = 0
    while position + 4 <= len(wire):
        (size,) = struct.unpack_from(">i", wire, position)
        position += 4
        if size < 0 or position + size > len(wire):
            break
        found.append(wire[position : position + size])
        position += size
    return found


def is_order(frame: bytes) -> bool:
    """Whether a broker that obeys would change the cluster: such a frame is well-formed, and no case for a test that
    asks whether bad ones do harm."""
    try:
        header = parse_request_header(frame)
        if header.api_key not in _ORDERS:
            return False
        message = decode_request(request_class(header.api_key), header.api_version, frame[header.body_offset :])
    except MalformedRequest:
        return False
    return not getattr(message, "validate_only", False)


@st.composite
def _with_header(draw: st.DrawFn) -> bytes:
    """A plausible header, and anything as its body."""
    head = struct.pack(
        ">hhih",
        draw(st.sampled_from([*SUPPORTED]) | st.integers(-32768, 32767)),
        draw(st.integers(-1, 13)),
        draw(st.integers(-(2**31), 2**31 - 1)),
        draw(st.sampled_from([-1, 0, 0, 0, 4, 32767, -2])),
    )
    return with_size(head + draw(st.binary(max_size=60)))


@st.composite
def _mutant(draw: st.DrawFn) -> bytes:
    frame = draw(st.sampled_from(samples())).frame
    return with_size(flip(frame, draw(st.integers(0, 1 << 14))) if draw(st.booleans()) else draw(mutations())(frame))


def wires() -> st.SearchStrategy[bytes]:
    """What hypothesis puts on a connection: anything, anything after a size, after a header, or a damaged request."""
    sized = st.builds(
        lambda size, data: struct.pack(">i", size) + data,
        st.integers(-1, 80) | st.sampled_from(_SIZES),
        st.binary(max_size=60),
    )
    one = st.one_of(_mutant(), _with_header(), sized, st.binary(max_size=40))
    return one.filter(lambda wire: not any(is_order(frame) for frame in complete_frames(wire)))
