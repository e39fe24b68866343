"""Client: the plain requests of tests, one connection to one broker, nothing retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.client.connection import BrokerConnection
from cluster.protocol import fetch
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import iter_batches
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.simulation.ledger import value_of

PRODUCE_VERSION, FETCH_VERSION = 9, 12


#: Milliseconds: when the clock of a simulation begins.
TIMESTAMP = 1_700_000_000_000


def batch(
    *values: bytes | NewRecord,
    key: bytes | None = None,
    producer_id: int = -1,
    base_sequence: int = -1,
    timestamp: int = TIMESTAMP,
    codec: int = 0,
    **fields: Any,
) -> bytes:
    """A batch as a producer sends it; with a producer id its epoch is 0 unless told. ``key`` and ``timestamp`` are of
    the values that are no records yet."""
    epoch = fields.pop("producer_epoch", 0 if producer_id >= 0 else -1)
    records = [value if isinstance(value, NewRecord) else NewRecord(timestamp, key, value) for value in values]
    return build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=base_sequence,
        codec=codec,
        **fields,
    )


@dataclass(frozen=True)
class Produced:
    """The answer for one partition."""

    error: ErrorCode
    base_offset: int
    log_start_offset: int


@dataclass(frozen=True)
class Fetched:
    """The answer for one partition: values with their offsets, at or above the fetch offset; ``next_offset`` is where
    the next fetch goes on, behind the last batch: compaction may have taken records at its end."""

    error: ErrorCode
    high_watermark: int
    records: list[tuple[int, bytes]]
    diverging: tuple[int, int] | None
    raw: bytes
    next_offset: int

    @property
    def values(self) -> list[bytes]:
        return [value for _, value in self.records]


class Client:
    """Talks to one broker. Partition 0 unless told otherwise."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.connection = connection

    async def produce(
        self,
        topic: str,
        records: bytes | None,
        *,
        partition: int = 0,
        acks: int = -1,
        timeout_ms: int = 3000,
        version: int = PRODUCE_VERSION,
        transactional_id: str | None = None,
    ) -> Produced:
        """Send one batch and wait for the answer."""
        request = request_class(ApiKey.PRODUCE)
        data = request.TopicProduceData.PartitionProduceData(index=partition, records=records)
        message = request(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[request.TopicProduceData(name=topic, partition_data=[data])],
        )
        response = await self.connection.send(message, version)
        (found,) = response.responses[0].partition_responses
        return Produced(ErrorCode(found.error_code), found.base_offset, getattr(found, "log_start_offset", -1))

    async def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        partition_max_bytes: int = 1 << 20,
        replica_id: int = -1,
        leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        version: int = FETCH_VERSION,
    ) -> Fetched:
        """Fetch one partition."""
        wanted = fetch.FetchPartition(
            topic, partition, leader_epoch, offset, last_fetched_epoch, -1, partition_max_bytes
        )
        request = fetch.FetchRequest(replica_id, max_wait_ms, min_bytes, max_bytes, 0, 0, -1, [wanted])
        data = fetch.build_request(version, self.connection.next_correlation_id(), "client", request)
        frame = await self.connection.send_raw(data)
        (found,) = fetch.parse_response(frame, version).partitions
        raw = bytes(found.records) if isinstance(found.records, memoryview) else b""
        records, next_offset = _decode(raw, offset)
        return Fetched(ErrorCode(found.error_code), found.high_watermark, records, found.diverging, raw, next_offset)

    async def list_offset(
        self,
        topic: str,
        timestamp: int,
        *,
        partition: int = 0,
        leader_epoch: int = -1,
        version: int = 7,
        only_committed: bool = False,
    ) -> tuple[ErrorCode, int]:
        """(error, offset) for a time, or -1 for the end, -2 for the start."""
        request = request_class(ApiKey.LIST_OFFSETS)
        asked = request.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
        )
        message = request(
            replica_id=-1,
            isolation_level=int(only_committed),
            topics=[request.ListOffsetsTopic(name=topic, partitions=[asked])],
        )
        response = await self.connection.send(message, version)
        found = response.topics[0].partitions[0]
        return ErrorCode(found.error_code), found.offset

    async def delete_records(
        self, topic: str, offset: int, *, partition: int = 0, timeout_ms: int = 5000, version: int = 2
    ) -> tuple[ErrorCode, int]:
        """(error, low watermark) for one partition."""
        request = request_class(ApiKey.DELETE_RECORDS)
        asked = request.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=partition, offset=offset)
        topics = [request.DeleteRecordsTopic(name=topic, partitions=[asked])]
        response = await self.send(ApiKey.DELETE_RECORDS, version, topics=topics, timeout_ms=timeout_ms)
        (found,) = response.topics[0].partitions
        return ErrorCode(found.error_code), found.low_watermark

    async def send(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """Any other request."""
        return await self.connection.send(request_class(api_key)(**fields), version)


def _decode(raw: bytes, offset: int) -> tuple[list[tuple[int, bytes]], int]:
    """The values from an offset on, and where the last batch ends."""
    found: list[tuple[int, bytes]] = []
    next_offset = offset
    for position, header in iter_batches(raw):
        for record in decode_records(raw[position : position + header.size_bytes]):
            if record.offset >= offset:
                found.append((record.offset, value_of(record.value, record.headers)))
        next_offset = header.next_offset
    return found, next_offset
