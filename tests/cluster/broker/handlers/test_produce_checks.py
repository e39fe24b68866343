"""The checks of a produce request (docs/produce-checks.md): one row per check, and the first that fails wins.

A row spoils a good request in one way. Spoiled in two ways, it is refused for the earlier one. The topic is compacted
and bounds timestamps, so that every check applies to it.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from crc32c import crc32c

from cluster.broker.replicas.internal_checks import MOST_RECORDS
from cluster.broker.replicas.produce_checks import ADMIN_CLIENT_ID
from cluster.coordinator.group.group_values import GroupValue, group_value
from cluster.coordinator.group.records import CommittedOffset, group_key, offset_key, offset_value
from cluster.coordinator.transaction.records import encode_key, encode_value
from cluster.coordinator.transaction.state import TransactionState, TransitMetadata
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_ZSTD, HEADER_BYTES, MAX_TIMESTAMP_AT, parse_header
from cluster.protocol.compression import compress, decompress
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.protocol.records import NewRecord, write_varint
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

TOPIC = "keyed"
MAX_BYTES = 3000
SEGMENT_BYTES = 2000
MINUTE_MS = 60_000


@dataclass(frozen=True)
class Draft:
    """A produce request of one batch with one record. As it stands it is good."""

    topic: str = TOPIC
    partition: int = 0
    version: int = 9
    acks: int = -1
    copies: int = 1
    codec: int = 0
    base_offset: int = 0
    value_bytes: int = 10
    spoils_crc: bool = False
    last_offset_delta: int = 0
    attributes: int = 0
    key: bytes | None = b"k"
    bytes_after: int = 0
    age_ms: int = 0
    base_sequence: int = 0

    def records(self, now_ms: int) -> bytes:
        body = b"\x00" + write_varint(0) + write_varint(0)
        body += write_varint(-1) if self.key is None else write_varint(len(self.key)) + self.key
        body += write_varint(self.value_bytes) + bytes(range(256)) * (self.value_bytes // 256 + 1)
        body = body[: len(body) - 256 * (self.value_bytes // 256 + 1) + self.value_bytes] + write_varint(0)
        payload = compress(self.codec, write_varint(len(body)) + body + bytes(self.bytes_after))
        when = now_ms - self.age_ms
        fields = (self.codec | self.attributes, self.last_offset_delta, when, when, 7, 0, self.base_sequence, 1)
        checked = struct.pack(">hiqqqhii", *fields) + payload
        crc = crc32c(checked) ^ self.spoils_crc
        head = struct.pack(">qiibI", self.base_offset, 9 + len(checked), -1, 2, crc)
        return (head + checked) * self.copies


class Row(NamedTuple):
    """A way to spoil a request, and what is answered."""

    code: ErrorCode
    spoil: dict[str, Any]


#: In the order of the checks.
ROWS: dict[str, Row] = {
    "unknown partition": Row(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {"partition": 9}),
    "two batches": Row(ErrorCode.INVALID_RECORD, {"copies": 2}),
    "old zstd": Row(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, {"version": 6, "codec": CODEC_ZSTD}),
    "acks": Row(ErrorCode.INVALID_REQUIRED_ACKS, {"acks": 2}),
    "no transactional id": Row(ErrorCode.INVALID_TXN_STATE, {"attributes": 0x10}),
    "base offset": Row(ErrorCode.INVALID_RECORD, {"base_offset": 5}),
    "size": Row(ErrorCode.MESSAGE_TOO_LARGE, {"value_bytes": MAX_BYTES}),
    "checksum": Row(ErrorCode.CORRUPT_MESSAGE, {"spoils_crc": True}),
    "count": Row(ErrorCode.INVALID_RECORD, {"last_offset_delta": 3}),
    "control": Row(ErrorCode.INVALID_RECORD, {"attributes": 0x20}),
    "bytes after the records": Row(ErrorCode.INVALID_RECORD, {"bytes_after": 3}),
    "no key": Row(ErrorCode.INVALID_RECORD, {"key": None}),
    "too old": Row(ErrorCode.INVALID_TIMESTAMP, {"age_ms": 2 * MINUTE_MS}),
    "larger than a segment": Row(ErrorCode.RECORD_LIST_TOO_LARGE, {"value_bytes": SEGMENT_BYTES}),
    "sequence": Row(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, {"base_sequence": 5}),
}
NAMES = list(ROWS)
#: Of records both, so both are told: the time decides the code (docs/produce-checks.md, below the table).
TOLD_TOGETHER = {("no key", "too old")}
#: What the partition itself checks first: everything before these rows wins over them, everything after loses.
FIRST_OF_PARTITION = NAMES.index("base offset")


async def send(client: Client, cluster: MemoryCluster, draft: Draft) -> Any:
    node = next(iter(cluster.nodes.values()))
    now_ms = node._seams.clock.wall_ms()
    request = request_class(ApiKey.PRODUCE)
    data = request.TopicProduceData.PartitionProduceData(index=draft.partition, records=draft.records(now_ms))
    topics = [request.TopicProduceData(name=draft.topic, partition_data=[data])]
    response = await client.send(
        ApiKey.PRODUCE, draft.version, transactional_id=None, acks=draft.acks, timeout_ms=2000, topic_data=topics
    )
    (found,) = response.responses[0].partition_responses
    return found


def scene(check: Callable[[MemoryCluster], Any], brokers: int = 1) -> None:
    async def main() -> None:
        async with MemoryCluster(brokers) as cluster:
            await cluster.create_topic(
                TOPIC,
                **{
                    "cleanup.policy": "compact",
                    "max.message.bytes": str(MAX_BYTES),
                    "segment.bytes": str(SEGMENT_BYTES),
                    "message.timestamp.before.max.ms": str(MINUTE_MS),
                },
            )
            await check(cluster)

    run(main())


async def expect(client: Client, cluster: MemoryCluster, draft: Draft, code: ErrorCode, what: str) -> None:
    found = await send(client, cluster, draft)
    assert ErrorCode(found.error_code) is code, what
    assert found.base_offset == -1, what


def test_each_check_has_its_code_and_the_first_wins() -> None:
    """Every row alone, and every two rows that can be had together. Nothing is stored; then the good one is."""

    async def check(cluster: MemoryCluster) -> None:
        client = Client(await cluster.connect(1))
        for name, row in ROWS.items():
            await expect(client, cluster, replace(Draft(), **row.spoil), row.code, name)
        for index, first in enumerate(NAMES):
            for second in NAMES[index + 1 :]:
                one, two = ROWS[first], ROWS[second]
                if set(one.spoil) & set(two.spoil):
                    continue
                code = two.code if (first, second) in TOLD_TOGETHER else one.code
                draft = replace(Draft(), **one.spoil, **two.spoil)
                await expect(client, cluster, draft, code, f"{first} and {second}")
        assert (await client.list_offset(TOPIC, -1))[1] == 0
        assert (await send(client, cluster, Draft())).base_offset == 0

    scene(check)


@pytest.mark.parametrize(
    ("who", "code"), [("follower", ErrorCode.NOT_LEADER_OR_FOLLOWER), ("alone", ErrorCode.NOT_ENOUGH_REPLICAS)]
)
def test_where_the_partition_stands_among_the_checks(who: str, code: ErrorCode) -> None:
    """After what the request tells by itself; before what its batch tells: no leader here (6), too few in sync (19)."""

    async def check(cluster: MemoryCluster) -> None:
        leader = cluster.leader(TOPIC)
        others = [broker for broker in cluster.broker_ids if broker != leader]
        if who == "alone":
            for broker_id in others:
                await cluster.crash(broker_id)
            await cluster.until(lambda: cluster.isr(TOPIC) == {leader})
        client = Client(await cluster.connect(others[0] if who == "follower" else leader))
        await expect(client, cluster, Draft(), code, who)
        for index, (name, row) in enumerate(ROWS.items()):
            expected = row.code if index < FIRST_OF_PARTITION else code
            await expect(client, cluster, replace(Draft(), **row.spoil), expected, name)

    scene(check, brokers=3)


def test_internal_topics_are_not_for_clients() -> None:
    """INVALID_TOPIC_EXCEPTION, after acks and before the leader; unknown as long as there is none."""

    async def check(cluster: MemoryCluster) -> None:
        client = Client(await cluster.connect(1))
        internal = replace(Draft(), topic="__consumer_offsets")
        await expect(client, cluster, internal, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is none")
        await cluster.create_topic("__consumer_offsets")
        await expect(client, cluster, internal, ErrorCode.INVALID_TOPIC_EXCEPTION, "not for clients")
        await expect(client, cluster, replace(internal, acks=2), ErrorCode.INVALID_REQUIRED_ACKS, "acks first")

    scene(check)


OFFSET_KEY, OFFSET_VALUE = offset_key("g", TOPIC, 0), offset_value(CommittedOffset(1, "", 0))
ID_KEY = encode_key("id")


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        ("__consumer_offsets", b"\0\0\xff", b"x"),
        ("__consumer_offsets", b"\0\7", None),
        ("__consumer_offsets", OFFSET_KEY, b"\0\x09"),
        ("__consumer_offsets", group_key("g"), OFFSET_VALUE),
        ("__transaction_state", b"\0\0\xff", None),
        ("__transaction_state", b"\0\7", None),
        ("__transaction_state", ID_KEY, OFFSET_VALUE),
    ],
)
def test_an_internal_topic_takes_its_own_records_alone(topic: str, key: bytes, value: bytes | None) -> None:
    """Not even the admin client may write what the topic's coordinator cannot read; tombstones it may."""

    async def check(cluster: MemoryCluster) -> None:
        await cluster.create_topic(topic, **{"cleanup.policy": "compact"})
        client = Client(await cluster.connect(1))
        client.connection._client_id = ADMIN_CLIENT_ID
        good = NewRecord(0, OFFSET_KEY if topic == "__consumer_offsets" else ID_KEY, None)
        for records in (batch(good, NewRecord(0, key, value)), batch(*[good] * (MOST_RECORDS + 1))):
            assert (await client.produce(topic, records)).error is ErrorCode.INVALID_RECORD
        assert (await client.produce(topic, batch(good, good, codec=1))).base_offset == 0
        assert (await client.list_offset(topic, -1))[1] == 2
        client.connection._client_id = "another"
        assert (await client.produce(topic, batch(good))).error is ErrorCode.INVALID_TOPIC_EXCEPTION

    scene(check)


def test_what_an_internal_topic_takes() -> None:
    """Offsets and groups in one, the states of transactions in the other."""

    async def check(cluster: MemoryCluster) -> None:
        client = Client(await cluster.connect(1))
        client.connection._client_id = ADMIN_CLIENT_ID
        transit = TransitMetadata(1, -1, 0, -1, 1000, TransactionState.EMPTY, frozenset(), -1, 5)
        stored = {
            "__consumer_offsets": [
                (OFFSET_KEY, OFFSET_VALUE), (group_key("g"), group_value(GroupValue("", 1, None, None, 0, ())))
            ],
            "__transaction_state": [(ID_KEY, encode_value(transit))],
        }  # fmt: skip
        for topic, pairs in stored.items():
            await cluster.create_topic(topic, **{"cleanup.policy": "compact"})
            assert (await client.produce(topic, batch(*[NewRecord(0, *pair) for pair in pairs]))).base_offset == 0

    scene(check)


def test_wrong_records_are_named() -> None:
    """From version 8 on with their indexes; before it the code alone."""

    async def check(cluster: MemoryCluster) -> None:
        client = Client(await cluster.connect(1))
        for version in (8, 9):
            found = await send(client, cluster, replace(Draft(), key=None, age_ms=2 * MINUTE_MS, version=version))
            assert found.error_code == ErrorCode.INVALID_TIMESTAMP
            assert [each.batch_index for each in found.record_errors] == [0, 0]
            texts = " ".join(each.batch_index_error_message for each in found.record_errors)
            assert "key" in texts
            assert "timestamp" in texts
        old = await send(client, cluster, replace(Draft(), key=None, version=7))
        assert old.error_code == ErrorCode.INVALID_RECORD

    scene(check)


def test_a_retry_that_has_grown_too_old_is_a_duplicate_still() -> None:
    """Its time was judged when it was new: the producer must not take for lost what is stored."""

    async def check(cluster: MemoryCluster) -> None:
        client = Client(await cluster.connect(1))
        draft = replace(Draft(), age_ms=MINUTE_MS - 1000)
        first = draft.records(cluster.nodes[1]._seams.clock.wall_ms())
        assert (await client.produce(TOPIC, first)).base_offset == 0
        await asyncio.sleep(5)
        assert (await client.produce(TOPIC, first)).base_offset == 0
        new = replace(draft, age_ms=MINUTE_MS + 1000, base_sequence=1)
        await expect(client, cluster, new, ErrorCode.INVALID_TIMESTAMP, "a new one is refused")

    scene(check)


@pytest.mark.parametrize("codec", range(5))
def test_records_are_looked_into(codec: int) -> None:
    """Not to be unpacked, or not what they say: refused. Offsets that do not run from 0: stored with ones that do."""

    async def check(cluster: MemoryCluster) -> None:
        client = Client(await cluster.connect(1))
        await expect(client, cluster, replace(Draft(), codec=codec, bytes_after=2), ErrorCode.INVALID_RECORD, "after")
        good = batch(b"a", b"b", codec=codec)
        refusal = ErrorCode.UNKNOWN_SERVER_ERROR if codec else ErrorCode.INVALID_RECORD
        assert (await client.produce("plain", broken(good, codec))).error is refusal
        assert (await client.produce("plain", renumbered(good, codec))).base_offset == 0
        assert (await client.produce("plain", good)).base_offset == 2
        assert (await client.fetch("plain", 0)).records == [(0, b"a"), (1, b"b"), (2, b"a"), (3, b"b")]

    async def with_plain_topic(cluster: MemoryCluster) -> None:
        await cluster.create_topic("plain")
        await check(cluster)

    scene(with_plain_topic)


def test_what_a_header_claims_is_compared_with_the_records() -> None:
    """Bytes that are not records, more records than there are bytes, a greatest time that no record has.

    As in Kafka's ``LogValidator.assignOffsetsNonCompressed`` nothing of it is stored, or as it is right.
    """

    async def check(cluster: MemoryCluster) -> None:
        await cluster.create_topic("plain")
        client = Client(await cluster.connect(1))
        good = batch(b"value")
        noise = sealed(good, b"\xff" * 40)
        assert (await client.produce("plain", noise)).error is ErrorCode.INVALID_RECORD
        many = bytearray(good)
        struct.pack_into(">i", many, 23, 2**31 - 2)
        struct.pack_into(">i", many, 57, 2**31 - 1)
        assert (await client.produce("plain", sealed(many, good[HEADER_BYTES:]))).error is ErrorCode.INVALID_RECORD
        late = bytearray(good)
        struct.pack_into(">q", late, MAX_TIMESTAMP_AT, 9_000_000_000_000)
        assert (await client.produce("plain", sealed(late, good[HEADER_BYTES:]))).base_offset == 0
        fetched = await client.fetch("plain", 0)
        assert fetched.records == [(0, b"value")]
        assert parse_header(fetched.raw).max_timestamp == parse_header(good).max_timestamp

    scene(check)


def sealed(head: bytes, payload: bytes) -> bytes:
    """A batch with other records, and its length and checksum made right."""
    data = bytearray(head[:HEADER_BYTES] + payload)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


def broken(good: bytes, codec: int) -> bytes:
    return sealed(good, b"\x01" + good[HEADER_BYTES + 1 : -2])


def renumbered(good: bytes, codec: int) -> bytes:
    """With the offset delta of the second record 7 instead of 1."""
    payload = bytearray(decompress(codec, good[HEADER_BYTES:]))
    second = len(payload) // 2
    assert payload[second + 3] == 2, "a zig-zag 1"
    payload[second + 3] = 14
    return sealed(good, compress(codec, payload))
