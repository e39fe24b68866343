"""A broker's metrics as Prometheus asks for them: counters, and what the broker is at this moment.

Owns the families and their names (docs/metrics.md), but for the coordinators' (``coordinator_exposition``). Everything
but the counting is done on demand, in threads that only read. Does not own what is counted (``metrics``,
``request_metrics``), nor the bounds of the HTTP port (``cluster.seams.http_port``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from cluster.broker.metric_families import Labels, counter, gauge, histogram, seconds
from cluster.broker.metrics import COUNTERS, Counters, TopicTraffic
from cluster.broker.node import Node
from cluster.broker.replicas.purgatory import DelayedFetch, DelayedProduce
from cluster.broker.replicas.replica import Replica
from cluster.broker.request_metrics import Times
from cluster.hosts import GuardedWsgi
from cluster.metadata.store import SessionState
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.seams.http_port import HttpPort

_TOPICS: Mapping[str, tuple[str, Callable[[TopicTraffic], int]]] = {
    "topic_messages_in": ("Records appended for producers", lambda traffic: traffic.messages_in),
    "topic_bytes_in": ("Bytes appended for producers", lambda traffic: traffic.bytes_in),
    "topic_bytes_out": ("Bytes sent to consumers", lambda traffic: traffic.bytes_out),
    "topic_replication_bytes_in": ("Bytes fetched from leaders", lambda traffic: traffic.replication_bytes_in),
    "topic_replication_bytes_out": ("Bytes sent to followers", lambda traffic: traffic.replication_bytes_out),
}

_PARTITIONS: Mapping[str, tuple[str, Callable[[Replica], int]]] = {
    "partition_log_start_offset": ("First offset", lambda partition: partition.log.log_start_offset),
    "partition_log_end_offset": ("Next offset", lambda partition: partition.log.log_end_offset),
    "partition_high_watermark": ("End of what is committed", lambda partition: partition.high_watermark),
    "partition_size_bytes": ("Bytes of all segments", lambda partition: partition.log.size_bytes),
    "partition_leader_epoch": ("Leader epoch", lambda partition: partition.leader_epoch),
}


class BrokerCollector(Collector):
    """Counters, and gauges that are given by name."""

    def __init__(self, counters: Counters, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._counters = counters
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        counters = self._counters
        for name, text in COUNTERS.items():
            yield counter(name, text, {(): getattr(counters, name)})
        causes: dict[Labels, float] = {(cause,): float(times) for cause, times in dict(counters.truncations).items()}
        yield counter("truncations", "Times that a log of this follower was cut or begun again", causes, ("cause",))
        yield from _requests(counters)
        topics = dict(counters.topics)
        for name, (text, value_of) in _TOPICS.items():
            yield counter(name, text, {(topic,): value_of(each) for topic, each in topics.items()}, ("topic",))
        connections: dict[Labels, float] = {
            (listener,): float(count) for listener, count in dict(counters.connections).items()
        }
        yield gauge("connections", "Open connections", connections, ("listener",))
        is_connected = counters.session_state is SessionState.CONNECTED
        yield gauge("zookeeper_connected", "Whether the session with ZooKeeper is connected", {(): is_connected})
        yield gauge(
            "log_load_seconds", "How long the logs took to load at the start", {(): seconds(counters.log_load_ns)}
        )
        yield histogram(
            "background_disk_seconds", "Syncs and checkpoints off the event loop", {(): counters.background_disk}
        )
        for name, value in self._gauges().items():
            yield gauge(name, name.replace("_", " "), {(): value})


class NodeCollector(Collector):
    """What a node is right now. Of more than ``most_partitions`` replicas none is shown one by one."""

    def __init__(self, node: Node, most_partitions: int) -> None:
        self._node = node
        self._most_partitions = most_partitions

    def collect(self) -> Iterable[Metric]:
        # Chaos' probes and the harness ask from the very beginning.
        partitions = list(self._node.replicas.partitions.values()) if self._node.is_started else []
        leaders = [leader for partition in partitions if (leader := partition.leader) is not None]
        gauges: dict[str, tuple[str, float]] = {
            "partitions": ("Replicas on this broker", len(partitions)),
            "leader_partitions": ("Partitions led by this broker", len(leaders)),
            "under_replicated_partitions": (
                "Partitions led here whose in-sync set lacks a replica",
                sum(leader.is_under_replicated for leader in leaders),
            ),
            "under_min_isr_partitions": (
                "Partitions led here with fewer in sync than min.insync.replicas",
                sum(not leader.has_enough_in_sync for leader in leaders),
            ),
            "fetch_max_lag": (
                "Committed records that this follower lacked when it last heard, the worst of its partitions",
                max((partition.fetch_lag for partition in partitions), default=0),
            ),
            "producer_ids": (
                "Producers that the logs remember",
                sum(len(partition.log.producers) for partition in partitions),
            ),
            "uncleanable_partitions": (
                "Replicas that could not be compacted and are left as they are",
                sum(partition.log.is_uncleanable for partition in partitions),
            ),
            **self._control(),
        }
        for name, (text, value) in gauges.items():
            yield gauge(name, text, {(): value})
        yield gauge("purgatory_size", "Requests that wait", self._waiting(), ("request",))
        if len(partitions) <= self._most_partitions:
            for name, (text, value_of) in _PARTITIONS.items():
                values: dict[Labels, float] = {
                    (each.topic, str(each.partition)): float(value_of(each)) for each in partitions
                }
                yield gauge(name, text, values, ("topic", "partition"))

    def _control(self) -> dict[str, tuple[str, float]]:
        node = self._node
        is_controller = node.is_started and node.control.is_controller
        offline = 0
        if is_controller:
            topics = [node.metadata.topic(name) for name in list(node.metadata.topic_names())]
            known = [each for topic in topics if topic is not None for each in list(topic.partitions.values())]
            offline = sum(each.leader < 0 for each in known)
        return {
            "active_controller": ("Whether this broker is the controller", is_controller),
            "offline_partitions": ("Partitions without a leader, as the controller knows them", offline),
        }

    def _waiting(self) -> dict[Labels, float]:
        if not self._node.is_started:
            return {}
        wheel = self._node.replicas.wheel
        return {("produce",): wheel.waiting(DelayedProduce), ("fetch",): wheel.waiting(DelayedFetch)}


def _requests(counters: Counters) -> Iterator[Metric]:
    apis = {ApiKey(key).name: metrics for key, metrics in sorted(dict(counters.api.apis).items())}
    counts: dict[Labels, float] = {
        (api, str(version)): count for api, each in apis.items() for version, count in dict(each.versions).items()
    }
    yield counter("api_requests", "Requests by API and version", counts, ("api", "version"))
    errors: dict[Labels, float] = {
        (key.name, ErrorCode.of(code).name): count for (key, code), count in dict(counters.api.errors).items()
    }
    yield counter("api_errors", "Errors answered, for each partition of Produce and Fetch", errors, ("api", "error"))
    parts: dict[Labels, Times] = {
        (api, part): times for api, each in apis.items() for part, times in each.parts().items()
    }
    yield histogram("request_seconds", "Where the time of requests went", parts, ("api", "part"))


class MetricsServer:
    """The HTTP port of one broker, on 127.0.0.1 unless it is told another address."""

    def __init__(self, collectors: Iterable[Collector], port: int, host: str = "127.0.0.1") -> None:
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        self._port = HttpPort(GuardedWsgi(make_wsgi_app(registry)), port, host)
        self.port = self._port.port

    def close(self) -> None:
        self._port.close()
