"""Well-formed requests of every API and version, drawn from one ``Random``, as parts that can be told apart.

Owns what is drawn (names that exist, partitions that exist, settings that may be changed, so that a request gets far)
and how a schema becomes parts: one for each number, length, count, text and end of a struct, with the place of every
list's elements. Does not own what is done to them (``mutations``), nor record batches (``batches``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from cluster.protocol.apis import (
    INTER_BROKER,
    PRODUCE_MIN_VERSION,
    SUPPORTED,
    ApiKey,
    is_flexible,
    request_header_version,
)
from cluster.protocol.messages import request_class
from cluster.protocol.primitives import write_uvarint
from tests.conformance.random_messages import CODES
from tests.hostile import batches

#: The topics that are asked about. Attackers make them, grow them and delete them.
TOPICS = tuple(f"hostile-{number}" for number in range(6))
PARTITIONS = 4
CLIENT_ID = "hostile"

INTEGER, LENGTH, COUNT, CONTENT, TAGS = "integer", "length", "count", "content", "tags"


class Part:
    """Some bytes of a request. ``code`` is how a number is packed: struct's letter, or ``u`` for a varint."""

    __slots__ = ("code", "data", "kind", "name")

    def __init__(self, kind: str, name: str, code: str, data: bytes) -> None:
        self.kind = kind
        self.name = name
        self.code = code
        self.data = data

    def __repr__(self) -> str:
        return f"Part({self.kind} {self.name} {self.code} {self.data[:20].hex()})"


class Elements(NamedTuple):
    """A list: which part counts it, how many there are, and from where to where the first one goes."""

    count_at: int
    count: int
    begin: int
    end: int


@dataclass(slots=True)
class Request:
    """One request as parts, header first, without its size."""

    api_key: ApiKey
    version: int
    draw: Random
    is_flexible: bool
    parts: list[Part] = field(default_factory=list)
    lists: list[Elements] = field(default_factory=list)

    def frame(self) -> bytes:
        return b"".join([part.data for part in self.parts])


Step = Callable[[Request], None]


def windows(listener: str) -> dict[ApiKey, range]:
    """What each listener serves: API -> versions."""
    served = SUPPORTED | INTER_BROKER if listener == "PEERS" else SUPPORTED
    found = {key: range(least, most + 1) for key, (least, most) in served.items()}
    return found | {ApiKey.PRODUCE: range(PRODUCE_MIN_VERSION, found[ApiKey.PRODUCE].stop)}


def request(api_key: ApiKey, version: int, correlation_id: int, draw: Random) -> Request:
    """A request that a broker understands."""
    made = Request(api_key, version, draw, is_flexible(api_key, version))
    parts = made.parts
    parts.append(Part(INTEGER, "api key", "h", struct.pack(">h", api_key)))
    parts.append(Part(INTEGER, "version", "h", struct.pack(">h", version)))
    parts.append(Part(CONTENT, "correlation id", "", struct.pack(">i", correlation_id)))
    header_version = request_header_version(api_key, version)
    if header_version > 0:
        parts.append(Part(LENGTH, "client id", "h", struct.pack(">h", len(CLIENT_ID))))
        parts.append(Part(CONTENT, "client id", "", CLIENT_ID.encode()))
    if header_version > 1:
        parts.append(Part(TAGS, "header", "u", b"\0"))
    for step in _layout(api_key, version):
        step(made)
    return made


@cache
def _layout(api_key: ApiKey, version: int) -> list[Step]:
    message = request_class(api_key)
    return _struct(message._struct, api_key, version, message.flexible_version_q(version))


def _struct(schema: Any, api_key: ApiKey, version: int, flexible: bool) -> list[Step]:
    steps = [
        _field(each, api_key, version, flexible)
        for each in schema.fields.values()
        if each.for_version_q(version) and not each.tagged_field_q(version)
    ]
    if flexible:
        steps.append(lambda made: made.parts.append(Part(TAGS, "struct", "u", b"\0")))
    return steps


def _field(each: Any, api_key: ApiKey, version: int, flexible: bool) -> Step:
    nullable = each.nullable_for_version_q(version)
    if each.is_struct_array():
        return _list(each.name, _struct(each.array_of, api_key, version, flexible), nullable, flexible)
    if each.is_array():
        return _list(
            each.name, [_simple(each.array_of.type_str, each.name, api_key, False, flexible)], nullable, flexible
        )
    if each.is_struct():
        raise TypeError(f"no request has a struct in it but in a list: {each.name}")
    return _simple(each.type_str, each.name, api_key, nullable, flexible)


def _list(name: str, element: list[Step], nullable: bool, flexible: bool) -> Step:
    def step(made: Request) -> None:
        draw, parts = made.draw, made.parts
        count = -1 if nullable and draw.random() < 0.1 else draw.choice((0, 1, 1, 1, 2, 3))
        parts.append(Part(COUNT, name, "u" if flexible else "i", packed_size(count, "i", flexible)))
        at = begin = len(parts)
        end = at
        for number in range(count):
            for each in element:
                each(made)
            if number == 0:
                end = len(parts)
        if count > 0:
            made.lists.append(Elements(at - 1, count, begin, end))

    return step


def _simple(kind: str, name: str, api_key: ApiKey, nullable: bool, flexible: bool) -> Step:
    if kind in CODES:
        code, value_of = CODES[kind][1:], NUMBERS.get((api_key, name)) or NUMBERS.get(name, _number)
        pack = struct.Struct(CODES[kind]).pack
        return lambda made: made.parts.append(Part(INTEGER, name, code, pack(value_of(made.draw))))
    if kind == "uuid":
        return lambda made: made.parts.append(Part(CONTENT, name, "", draw_uuid(made.draw)))
    draw_bytes = batches.draw_good if kind == "records" else TEXTS.get((api_key, name)) or TEXTS.get(name, _text)
    plain = "h" if kind == "string" else "i"
    code = "u" if flexible else plain

    def sized(made: Request) -> None:
        data = None if nullable and made.draw.random() < 0.05 else draw_bytes(made.draw)
        size = -1 if data is None else len(data)
        made.parts.append(Part(LENGTH, name, code, packed_size(size, plain, flexible)))
        made.parts.append(Part(CONTENT, name, kind, data or b""))

    return sized


def packed_size(size: int, plain: str, flexible: bool) -> bytes:
    """A length or count as it stands before what it counts; -1 is null."""
    return write_uvarint(size + 1) if flexible else struct.pack(f">{plain}", size)


def draw_uuid(draw: Random) -> bytes:
    return draw.choice((bytes(16), UUID(int=draw.getrandbits(128)).bytes, b"\xff" * 16))


# What the fields say. Names alone where they mean the same everywhere.


def _one_of(*values: Any) -> Callable[[Random], Any]:
    return lambda draw: draw.choice(values)


def _number(draw: Random) -> int:
    return draw.choice((0, 0, 1, 1, 2, 5))


def _partition(draw: Random) -> int:
    return draw.randrange(PARTITIONS + 1)


def _topic(draw: Random) -> bytes:
    return draw.choice(TOPICS).encode()


def _text(draw: Random) -> bytes:
    return draw.choice((b"a", b"group", b"1", b""))


#: Epochs of a broker's former lives: -1 is any life's, and a later one than its own a broker will soon hear of itself.
FORMER_LIVES = (0, -2, -(1 << 63))

_WAIT_MS = _one_of(0, 10, 1000, 5000)
_EPOCH = _one_of(-1, -1, 0, 0, 1)
_BROKER_EPOCH = _one_of(*FORMER_LIVES)
#: By name, or by API and name.
NUMBERS: dict[Any, Callable[[Random], Any]] = {
    "acks": _one_of(-1, -1, 1, 1, 0),
    "timeout_ms": _WAIT_MS,
    "max_wait_ms": _one_of(0, 1, 5, 500),
    "min_bytes": _one_of(0, 1, 1, 100_000),
    "max_bytes": _one_of(1 << 20, 50 << 20, 0),
    "partition_max_bytes": _one_of(1 << 20, 100, 0),
    "index": _partition,
    "partition": _partition,
    "partition_index": _partition,
    "partitions": _partition,
    "partition_indexes": _partition,
    (ApiKey.FETCH, "replica_id"): _one_of(-1, -1, 1, 2),
    "replica_id": _one_of(-1, -2, 1),
    "session_id": _one_of(0, 0, 0, 7),
    "session_epoch": _one_of(-1, -1, 0, 1),
    "current_leader_epoch": _EPOCH,
    "last_fetched_epoch": _EPOCH,
    "leader_epoch": _EPOCH,
    "log_start_offset": _one_of(-1, -1, 0),
    "timestamp": _one_of(-1, -2, -3, -4, 0, 1_700_000_000_000),
    (ApiKey.DELETE_RECORDS, "offset"): _one_of(-1, 0, 1, 5),
    "num_partitions": _one_of(-1, 1, PARTITIONS, PARTITIONS),
    "replication_factor": _one_of(-1, 1),
    (ApiKey.CREATE_PARTITIONS, "count"): _one_of(PARTITIONS, PARTITIONS + 1, PARTITIONS + 2),
    "broker_ids": _one_of(1, 1, 2),
    "replicas": _one_of(1, 1, 2),
    "isr": _one_of(1, 1, 2),
    "broker_id": _one_of(1, 1, 2),
    "broker_epoch": _BROKER_EPOCH,
    "resource_type": _one_of(2, 2, 2, 4, 8),
    "config_operation": _one_of(0, 0, 1, 2, 3),
    "transaction_timeout_ms": _one_of(60_000, 0),
    "producer_id": _one_of(-1, -1, 0, 1),
    "producer_epoch": _one_of(-1, -1, 0, 1),
    "key_type": _one_of(0, 0, 1),
    "validate_only": _one_of(False, False, True),
}

_SETTING_NAMES = _one_of(
    b"retention.ms",
    b"segment.bytes",
    b"cleanup.policy",
    b"max.message.bytes",
    b"message.timestamp.type",
    b"compression.type",
    b"min.insync.replicas",
    b"segment.ms",
    b"flush.messages",
    b"unclean.leader.election.enable",
)
_SETTING_VALUES = _one_of(
    b"1", b"-1", b"1048576", b"delete", b"compact", b"compact,delete", b"LogAppendTime", b"gzip", b"zstd", b"true", b""
)
#: Of the bytes of a text.
TEXTS: dict[Any, Callable[[Random], bytes]] = {
    "topic": _topic,
    "topic_name": _topic,
    "topic_names": _topic,
    "name": _topic,
    "resource_name": lambda draw: draw.choice((*(topic.encode() for topic in TOPICS), b"1", b"")),
    "configuration_keys": _SETTING_NAMES,
    (ApiKey.CREATE_TOPICS, "name"): lambda draw: _topic(draw) if draw.random() < 0.7 else _SETTING_NAMES(draw),
    (ApiKey.ALTER_CONFIGS, "name"): _SETTING_NAMES,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "name"): _SETTING_NAMES,
    "value": _SETTING_VALUES,
    "transactional_id": _one_of(b"", b"transaction"),
    "client_software_name": _one_of(b"hostile", b"apache-kafka-java"),
    "client_software_version": _one_of(b"1.0"),
    "host": _one_of(b"127.0.0.1"),
    "host_name": _one_of(b"127.0.0.1"),
    "listener": _one_of(b"CLIENTS", b"PEERS"),
}
