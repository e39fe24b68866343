"""Hypothesis strategies for the wire: messages made from their schemas, batches, Produce and Fetch values.

Owns how test data is drawn. Does not judge anything.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from cluster.protocol.batch import BatchHeader
from cluster.protocol.fetch import FetchPartition, FetchRequest, FetchResult
from cluster.protocol.produce import ProducePartition, ProduceRequest, ProduceResult
from cluster.protocol.records import NewRecord

INT8 = st.integers(-(1 << 7), (1 << 7) - 1)
INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
UINT32 = st.integers(0, (1 << 32) - 1)

TEXT = st.text(max_size=12)
#: Long enough, now and then, that a compact length takes two bytes.
SOME_BYTES = st.binary(max_size=20) | st.binary(min_size=120, max_size=200)
TOPIC = st.sampled_from(["t", "orders", "a-b.c_d", "ünïcode"]) | TEXT

_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "int8": INT8,
    "int16": INT16,
    "uint16": st.integers(0, (1 << 16) - 1),
    "int32": INT32,
    "int64": INT64,
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": SOME_BYTES,
    "records": SOME_BYTES,
    "uuid": st.none() | st.uuids(),
    "bitfield": st.none() | st.sets(st.integers(0, 30), max_size=4),
}


@cache
def messages(message_class: Any, version: int) -> st.SearchStrategy[Any]:
    """Instances of a message of ``kafka.protocol``, every field of this version set."""
    return _fields(message_class._struct, version).map(lambda values: message_class(**values))


def _fields(schema: Any, version: int) -> st.SearchStrategy[dict[str, Any]]:
    fields = [field for field in schema.fields.values() if field.for_version_q(version)]
    return st.fixed_dictionaries({field.name: _field(field, version) for field in fields})


def _field(field: Any, version: int) -> st.SearchStrategy[Any]:
    if field.is_struct_array():
        values = st.lists(_struct(field, version), max_size=3)
    elif field.is_array():
        values = st.lists(_SIMPLE[field.array_of.type_str], max_size=4)
    elif field.is_struct():
        values = _struct(field, version)
    else:
        values = _SIMPLE[field.type_str]
    return st.none() | values if field.nullable_for_version_q(version) else values


def _struct(field: Any, version: int) -> st.SearchStrategy[Any]:
    return _fields(field, version).map(lambda values: field.data_class(**values))


BATCH_HEADERS = st.builds(
    BatchHeader,
    base_offset=INT64,
    batch_length=st.integers(49, (1 << 31) - 1),
    leader_epoch=INT32,
    magic=st.just(2),
    crc=UINT32,
    attributes=INT16,
    last_offset_delta=INT32,
    base_timestamp=INT64,
    max_timestamp=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=INT32,
    record_count=INT32,
)

RECORDS = st.lists(
    st.builds(
        NewRecord,
        timestamp=st.integers(0, 1 << 42),
        key=st.none() | SOME_BYTES,
        value=st.none() | SOME_BYTES,
        headers=st.lists(st.tuples(TEXT, st.none() | SOME_BYTES), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


def _grouped(entries: list[Any]) -> list[Any]:
    """In the order in which the wire can carry them: by topic, in order of first appearance."""
    topics: dict[str, list[Any]] = {}
    for entry in entries:
        topics.setdefault(entry.topic, []).append(entry)
    return [entry for group in topics.values() for entry in group]


PRODUCE_REQUESTS = st.builds(
    ProduceRequest,
    transactional_id=st.none() | TEXT,
    acks=INT16,
    timeout_ms=INT32,
    partitions=st.lists(st.builds(ProducePartition, TOPIC, INT32, st.none() | SOME_BYTES), max_size=5).map(_grouped),
)

PRODUCE_RESULTS = st.lists(
    st.builds(
        ProduceResult,
        *(TOPIC, INT32, INT16, INT64, INT64, INT64, st.none() | TEXT),
        st.lists(st.tuples(INT32, st.none() | TEXT), max_size=3),
    ),
    max_size=5,
).map(_grouped)

FETCH_REQUESTS = st.builds(
    FetchRequest,
    replica_id=INT32,
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    isolation_level=INT8,
    session_id=INT32,
    session_epoch=INT32,
    partitions=st.lists(st.builds(FetchPartition, TOPIC, INT32, INT32, INT64, INT32, INT64, INT32), max_size=5).map(
        _grouped
    ),
    forgotten=st.lists(st.tuples(st.sampled_from(["t", "u"]), INT32), max_size=3).map(sorted),
    rack_id=TEXT,
)

FETCH_RESULTS = st.lists(
    st.builds(
        FetchResult,
        TOPIC,
        INT32,
        INT16,
        INT64,
        INT64,
        INT64,
        records=st.none() | SOME_BYTES,
        diverging=st.none() | st.tuples(INT32, INT64),
        current_leader=st.none() | st.tuples(INT32, INT32),
        aborted=st.none() | st.lists(st.tuples(INT64, INT64), max_size=3),
        preferred_read_replica=INT32,
    ),
    max_size=5,
).map(_grouped)
