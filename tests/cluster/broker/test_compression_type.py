"""compression.type of a topic: the leader repacks what is not in its codec, and leaves alone what is."""

from __future__ import annotations

import itertools

import pytest

from cluster.protocol.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_ZSTD, parse_header
from cluster.protocol.compression import CODEC_NAMES
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import client_of_leader, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

NAMES = {**CODEC_NAMES, CODEC_NONE: "uncompressed"}


def stored(raw: bytes) -> list[int]:
    """The codecs of the batches."""
    found = []
    while raw:
        header = parse_header(raw)
        found.append(header.codec)
        raw = raw[header.size_bytes :]
    return found


def test_whatever_comes_is_stored_in_the_topic_s_codec() -> None:
    """Every codec into a topic of every codec: the same records, the same offsets; ``producer`` keeps each its own."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        for codec, name in [*NAMES.items(), (None, "producer")]:
            await cluster.create_topic(f"in-{name}", **{"compression.type": name})
            client = await client_of_leader(cluster, f"in-{name}")
            sent = [batch(b"a%d" % each, b"b" * 300, codec=each) for each in NAMES]
            for index, records in enumerate(sent):
                assert (await client.produce(f"in-{name}", records)).base_offset == 2 * index
            found = await client.fetch(f"in-{name}", 0)
            values = itertools.chain.from_iterable((b"a%d" % each, b"b" * 300) for each in NAMES)
            assert found.values == list(values)
            assert stored(found.raw) == [each if codec is None else codec for each in NAMES]

    with_topic(check)


def test_a_retry_is_known_although_it_was_packed_again() -> None:
    """Idempotence goes by producer and sequence, which stay; the replicas hold the leader's bytes."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        await cluster.create_topic("zipped", replicas=2, **{"compression.type": "gzip"})
        client = await client_of_leader(cluster, "zipped")
        first = batch(b"x" * 500, producer_id=9, base_sequence=0)
        for _ in range(2):
            assert (await client.produce("zipped", first)).base_offset == 0
        assert (await client.produce("zipped", batch(b"y", producer_id=9, base_sequence=1))).base_offset == 1
        logs = [node.replicas.partitions["zipped", 0].log for node in cluster.nodes.values()]
        await cluster.until(lambda: {log.log_end_offset for log in logs} == {2})
        one, other = (log.read(0, 1 << 20, 2).records for log in logs)
        assert one.file.pread(one.size, one.position) == other.file.pread(other.size, other.position)
        assert logs[0].config.codec == CODEC_GZIP

    with_topic(check, brokers=2)


def test_what_is_too_large_unpacked_is_refused() -> None:
    """The limit counts for the batch that would be stored; nothing of it is."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        await cluster.create_topic("open", **{"compression.type": "uncompressed", "max.message.bytes": "2000"})
        client = await client_of_leader(cluster, "open")
        refused = await client.produce("open", batch(b"x" * 3000, codec=CODEC_LZ4))
        assert refused.error is ErrorCode.MESSAGE_TOO_LARGE
        assert (await client.produce("open", batch(b"x" * 1000, codec=CODEC_LZ4))).base_offset == 0

    with_topic(check)


def test_a_topic_that_does_not_say_goes_by_its_broker() -> None:
    """The broker's own compression.type is the default of topics that do not say."""

    async def check(_cluster: MemoryCluster, client: Client) -> None:
        await client.produce("t", batch(b"x"))
        assert stored((await client.fetch("t", 0)).raw) == [CODEC_LZ4]

    with_topic(check, compression_type="lz4")


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, ErrorCode.NONE)])
def test_zstd_is_not_for_old_clients(version: int, code: ErrorCode) -> None:
    """A topic that stores zstd is refused to fetches before version 10 (KIP-110)."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        await cluster.create_topic("z", **{"compression.type": "zstd"})
        client = await client_of_leader(cluster, "z")
        await client.produce("z", batch(b"x"))
        found = await client.fetch("z", 0, version=version)
        assert found.error is code
        assert stored(found.raw) == ([] if code else [CODEC_ZSTD])

    with_topic(check)
