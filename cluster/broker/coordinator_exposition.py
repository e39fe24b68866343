"""The metrics of a broker's coordinators as Prometheus asks for them: groups, transactions, and those that are late.

Owns their families and names (docs/metrics.md). All is computed on demand, in threads that only read: a copy of a
dictionary's values is taken in one step. Does not own what is counted (``coordinator_counters``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from cluster.broker.coordinator_counters import CoordinatorCounters
from cluster.broker.groups.group_service import GroupService
from cluster.broker.metric_families import Labels, counter, gauge, histogram, seconds
from cluster.broker.node import Node
from cluster.broker.request_metrics import Times
from cluster.broker.transactions.transaction_service import TransactionService
from cluster.coordinator.group.states import GroupState
from cluster.coordinator.transaction.describing import STATE_NAMES

#: A transaction is late this long after the longest time that one may take (Kafka's ``LATE_TRANSACTION_BUFFER_MS``).
LATE_MS = 5 * 60_000


class CoordinatorCollector(Collector):
    """Of one node. Before it is started there is nothing but zeros. ``wall_ms`` is the time, for any thread."""

    def __init__(self, node: Node, wall_ms: Callable[[], int]) -> None:
        self._node = node
        self._wall_ms = wall_ms

    def collect(self) -> Iterable[Metric]:
        yield from _counted(self._node.counters.coordinators)
        coordinators = self._node.coordinators
        if coordinators is not None:
            yield from _groups(coordinators.groups)
            yield from _transactions(coordinators.transactions)
            text = "Partitions led here that have a transaction open for far too long"
            yield gauge("partitions_with_late_transactions", text, {(): self._late()})

    def _late(self) -> int:
        least_ms = self._node.config["transaction.max.timeout.ms"] + LATE_MS
        now_ms = self._wall_ms()
        led = [each for each in list(self._node.replicas.partitions.values()) if each.leader is not None]
        newest = (each.log.oldest_transaction_timestamp() for each in led)
        return sum(timestamp > 0 and now_ms - timestamp > least_ms for timestamp in newest)


def _counted(counters: CoordinatorCounters) -> Iterator[Metric]:
    yield counter("offset_commits", "Offsets of groups that were stored", {(): counters.offset_commits})
    text = "Rebalances whose assignment was stored"
    yield counter("completed_rebalances", text, {(): counters.completed_rebalances})
    decided: dict[Labels, float] = {(result,): count for result, count in counters.decided.items()}
    yield counter("transactions_decided", "Transactions by what was decided", decided, ("result",))
    loads: dict[Labels, Times] = {(each,): times for each, times in counters.loads.items()}
    yield histogram("coordinator_load_seconds", "How long partitions took to load", loads, ("coordinator",))
    longest: dict[Labels, float] = {(each,): seconds(ns) for each, ns in counters.longest_load_ns.items()}
    yield gauge("coordinator_longest_load_seconds", "The longest of these loads", longest, ("coordinator",))
    text = "Questions whether partitions are in a transaction"
    yield histogram("transaction_verification_seconds", text, {(): counters.verifications})
    text = "Partitions that were not in it, or whose coordinator could not be asked"
    yield counter("transaction_verification_failures", text, {(): counters.verification_failures})


def _groups(service: GroupService) -> Iterator[Metric]:
    groups = [group for each in list(service.coordinator.groups.values()) for group in list(each.values())]
    states = Counter(group.state for group in groups)
    values: dict[Labels, float] = {(state.value,): states[state] for state in GroupState}
    yield gauge("groups", "Groups coordinated here", values, ("state",))
    offsets = sum(len(group.offsets.committed) for group in groups)
    yield gauge("committed_offsets", "Offsets that these groups have committed", {(): offsets})


def _transactions(service: TransactionService) -> Iterator[Metric]:
    served = list(service.coordinator.owned.served.values())
    states = Counter(metadata.state for each in served for metadata in each.all())
    values: dict[Labels, float] = {(name,): states[state] for state, name in STATE_NAMES.items()}
    yield gauge("transactional_ids", "Transactional IDs coordinated here", values, ("state",))
    queues: dict[Labels, float] = {(name,): size for name, size in service.queue_sizes().items()}
    yield gauge("transaction_queue_size", "Transactions whose end waits", queues, ("queue",))
