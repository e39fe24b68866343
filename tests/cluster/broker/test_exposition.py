"""The port of the metrics, scraped as Prometheus does: what a broker counted, and what it is."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from cluster.broker.exposition import BrokerCollector, MetricsServer, NodeCollector
from cluster.broker.metrics import Counters
from cluster.broker.node import Node
from cluster.broker.request_metrics import ApiMetrics, Times
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

#: (name, values of its labels in the order of their names) -> value
Samples = Mapping[tuple[str, ...], float]


def scrape(counters: Counters, node: Node | None = None, most_partitions: int = 100) -> Samples:
    """Over HTTP, parsed by prometheus_client's own parser."""
    collectors = [BrokerCollector(counters, lambda: {"event_loop_lag_seconds": 0.25})]
    server = MetricsServer([*collectors, *([NodeCollector(node, most_partitions)] if node else [])], 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    finally:
        server.close()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_names_that_faults_and_the_harness_rely_on() -> None:
    """They are there before anything was counted."""
    counters = Counters()
    counters.produce_retries = 3
    counters.truncations["diverging epoch"] += 2
    samples = scrape(counters)
    assert samples["gapless_produce_retries_total",] == 3
    assert samples["gapless_truncations_total", "diverging epoch"] == 2
    assert samples["gapless_event_loop_lag_seconds",] == 0.25
    for name in ("produce_batches", "produce_duplicates", "isr_shrinks", "isr_expands", "truncated_records"):
        assert samples[f"gapless_{name}_total",] == 0


def test_a_broker_that_served() -> None:
    """Requests by API and version with their times, errors by API, bytes by topic, offsets by partition."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        records = batch(b"a", b"b", b"c", producer_id=7, base_sequence=0)
        await client.produce(TOPIC, records)
        await client.produce("unknown", records)
        await client.fetch(TOPIC, 0)
        (node,) = cluster.nodes.values()
        samples = scrape(node.counters, node)
        assert samples["gapless_api_requests_total", "PRODUCE", "9"] == 2
        assert samples["gapless_api_errors_total", "PRODUCE", "UNKNOWN_TOPIC_OR_PARTITION"] == 1
        for part in ("total", "local", "remote", "response"):
            assert samples["gapless_request_seconds_count", "PRODUCE", part] == 2
            assert samples["gapless_request_seconds_bucket", "FETCH", "+Inf", part] == 1
        traffic = ("messages_in", "bytes_in", "bytes_out", "replication_bytes_in", "replication_bytes_out")
        values = [samples[f"gapless_topic_{name}_total", TOPIC] for name in traffic]
        assert values == [3, len(records), len(records), 0, 0]
        assert ("gapless_topic_messages_in_total", "unknown") not in samples
        offsets = ("log_start_offset", "log_end_offset", "high_watermark", "size_bytes", "leader_epoch")
        values = [samples[f"gapless_partition_{name}", "0", TOPIC] for name in offsets]
        assert values == [0, 3, 3, len(records), 0]
        now = {name: samples[f"gapless_{name}",] for name in GAUGES}
        assert now == GAUGES
        assert samples["gapless_connections", "CLIENTS"] >= 1
        assert samples["gapless_purgatory_size", "produce"] == 0
        assert samples["gapless_leader_elections_total",] == 1
        assert ("gapless_partition_high_watermark", "0", TOPIC) not in scrape(node.counters, node, most_partitions=0)

    with_topic(check)


GAUGES = {
    "partitions": 1,
    "leader_partitions": 1,
    "under_replicated_partitions": 0,
    "under_min_isr_partitions": 0,
    "offline_partitions": 0,
    "active_controller": 1,
    "zookeeper_connected": 1,
    "producer_ids": 1,
    "fetch_max_lag": 0,
    "log_load_seconds": 0,
}


def test_a_follower_that_died() -> None:
    """Its leader counts the partition as under-replicated, below its minimum, and a produce waits in the purgatory."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a"))
        leader = cluster.leader(TOPIC)
        (other,) = set(cluster.broker_ids) - {leader}
        follower = cluster.nodes[other]
        samples = scrape(follower.counters, follower)
        assert samples["gapless_topic_replication_bytes_in_total", TOPIC] > 0
        await cluster.crash(other)
        await cluster.until(lambda: cluster.isr(TOPIC) == {leader})
        node = cluster.nodes[leader]
        refused = await client.produce(TOPIC, batch(b"b"))
        assert refused.error is ErrorCode.NOT_ENOUGH_REPLICAS
        samples = scrape(node.counters, node)
        assert samples["gapless_under_replicated_partitions",] == 1
        assert samples["gapless_under_min_isr_partitions",] == 1
        assert samples["gapless_topic_replication_bytes_out_total", TOPIC] > 0
        assert samples["gapless_api_errors_total", "PRODUCE", "NOT_ENOUGH_REPLICAS"] == 1

    with_topic(check, brokers=2, min_insync_replicas="2")


def test_times_fall_into_buckets_of_powers_of_four() -> None:
    """Bucket i is what is below 4^i microseconds; what is longer than all of them is in the last."""
    times = Times()
    for elapsed_us in (0, 1, 3, 4, 15, 16, 10**12):
        times.note(elapsed_us * 1000)
    assert times.buckets == [1, 2, 2, 1, *[0] * 9, 1]
    assert times.sum_ns == (39 + 10**12) * 1000


def test_where_the_time_of_a_request_went() -> None:
    """What is answered at once was local; else the parts add up to the total."""
    metrics = ApiMetrics()
    metrics.at_once.note(5_000)
    metrics.delayed(1_000, 3_000, 13_000, 14_000)
    assert {part: times.sum_ns for part, times in metrics.parts().items()} == {
        "total": 18_000,
        "local": 7_000,
        "remote": 10_000,
        "response": 1_000,
    }
    assert {sum(times.buckets) for times in metrics.parts().values()} == {2}
