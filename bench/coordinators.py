"""How long no transaction commits when the broker that coordinates it goes: killed with signal 9, under load.

    python -m bench coordinators [--kills N] [--interval MS] [--settle SECONDS]

Three real brokers without proxies, profile ``chaos`` (session 2 s), RF 3, min.insync.replicas 2. For each partition of
``__transaction_state`` our own client and librdkafka commit one transaction after another (two records each, in two
partitions), all at the same time. In turn the coordinator of a partition is killed; when all commit again it is
restarted, and the next one follows when every replica is in sync. A gap is the longest time between two successive
commits of a ``transactional.id`` from the kill on. Owns the bar: session timeout plus 1 s at the 95th percentile, for
the ids that the broker coordinated. Beside them are shown the others, whose records it may have led, and, at the same
time, records without transactions (acks=all, librdkafka) of the partitions that it led.
"""

from __future__ import annotations

import argparse
import itertools
import operator
import sys
import tempfile
import time
from collections import defaultdict
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import create_topics, wait_in_sync
from bench.commits import FACTORIES, CommitLoad
from bench.failover import PHASES, phases_ms
from bench.load import TopicLoad
from bench.measure import Result, note, quantile
from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.config.profiles import CHAOS
from cluster.coordinator.partitioning import partition_for
from loadgen.settings import CONFLUENT
from tests.integration.local_cluster import LocalCluster

TOPIC, PLAIN = "bench", "plain"
PARTITIONS = 6
REPLICAS = 3
COORDINATED = int(CHAOS.broker["transaction.state.log.num.partitions"])
SESSION_MS = int(CHAOS.broker["zookeeper.session.timeout.ms"])
ALLOWANCE_MS = 1000
RECOVERY_S = 60.0
#: Records a second without transactions, in all.
PLAIN_RATE = 60.0
#: Commits of every id after which all is as it was.
EACH = 3
COORDINATED_BY_IT, PLAIN_LED = "coordinated by the broker", "plain records, led by the broker"


def start_loads(bootstrap: str, interval_ms: float) -> dict[int, list[CommitLoad]]:
    """Partition of ``__transaction_state`` -> the loads that it coordinates, one for each client."""
    loads: dict[int, list[CommitLoad]] = {}
    for client, number in itertools.product(FACTORIES, range(COORDINATED)):
        name = next(each for each in map(f"{client}-{{}}".format, itertools.count()) if _home(each) == number)
        # the load's own limits of time for transactions hold beside the profile's back-offs
        given = {key: value for key, value in CHAOS.producer[client].items() if key != "delivery.timeout.ms"}
        if client == CONFLUENT:
            given["log_level"] = "2"
        partitions = (number, (number + 1) % PARTITIONS)
        load = CommitLoad(client, bootstrap, name, given, TOPIC, partitions, interval_ms / 1000)
        loads.setdefault(number, []).append(load)
    return loads


def _home(transactional_id: str) -> int:
    return partition_for(transactional_id, COORDINATED)


def wait_committed(loads: dict[int, list[CommitLoad]], since_s: float) -> None:
    """Wait until every id has some commits since a time. Raises ``TimeoutError``."""
    deadline = time.monotonic() + RECOVERY_S
    for load in itertools.chain.from_iterable(loads.values()):
        while load.committed_since(since_s) < EACH:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{load} committed nothing within {RECOVERY_S:g} s; {load.refusals[-3:]}")
            time.sleep(0.02)  # coarser than waking for every commit, which would cost what is measured


class Loads(NamedTuple):
    """Everything that is written: transactions by the partition of their coordinator, and records without."""

    commits: dict[int, list[CommitLoad]]
    plain: TopicLoad

    def wait(self, since_s: float) -> None:
        """Until all of it proceeds since a time. Raises ``TimeoutError``."""
        wait_committed(self.commits, since_s)
        self.plain.wait_acknowledged(since_s, RECOVERY_S)


def one(cluster: LocalCluster, loads: Loads, admin: AdminClient, turn: int, result: Result, settle_s: float) -> None:
    """One kill, recovery and restart; its figures go to ``result``."""
    wait_in_sync(admin, TOPIC, REPLICAS, RECOVERY_S)
    plain = wait_in_sync(admin, PLAIN, REPLICAS, RECOVERY_S)
    state = wait_in_sync(admin, TRANSACTIONS_TOPIC, REPLICAS, RECOVERY_S)
    time.sleep(settle_s)  # a steady load before the kill is what is measured against
    loads.wait(time.monotonic())
    victim = state[turn % COORDINATED].leader
    killed_s, killed_ns = time.monotonic(), time.monotonic_ns()
    cluster.kill(victim)
    loads.wait(time.monotonic())
    time.sleep(0.2)  # a later stall of the same failover belongs to its gap
    gaps: dict[str, list[float | None]] = defaultdict(list)
    for number, some in loads.commits.items():
        kind = COORDINATED_BY_IT if state[number].leader == victim else "coordinated elsewhere"
        for load in some:
            gaps[kind].append(load.longest_gap_s(killed_s))
            gaps[f"{kind}, {load.client}"].append(gaps[kind][-1])
    for partition in loads.plain.partitions:
        if plain[partition.partition].leader == victim:
            gaps[PLAIN_LED].append(partition.longest_gap_s(killed_s))
    for kind, found in sorted(gaps.items()):
        for gap_s in found:
            assert gap_s is not None, kind
            result.add(f"gap, {kind}", "ms", gap_s * 1000)
    for name, after_ms in phases_ms(cluster, killed_ns).items():
        if name in PHASES:
            result.add(f"first {name} after", "ms", after_ms)
    worst = {kind: max(each for each in found if each is not None) for kind, found in sorted(gaps.items())}
    note(f"kill {turn + 1}: broker {victim}; worst gaps: " + ", ".join(f"{k} {v:.2f} s" for k, v in worst.items()))
    cluster.restart(victim)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--interval", type=float, default=100.0, help="ms between two transactions of an id (100)")
    parser.add_argument("--settle", type=float, default=1.0, help="seconds in sync before the next (1)")
    options = parser.parse_args()
    settings = {
        "kills": options.kills,
        "ids": COORDINATED * len(FACTORIES),
        "ms between transactions": options.interval,
    }
    result = Result("coordinators", {**settings, "session ms": SESSION_MS, "proxies": "none"})
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory, LocalCluster(directory) as cluster:
        create_topics(cluster.bootstrap, [NewTopic(name, PARTITIONS, REPLICAS) for name in (TOPIC, PLAIN)])
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        client = {**CHAOS.producer[CONFLUENT], "linger.ms": "0", "log_level": "2"}
        plain = TopicLoad(PLAIN, PARTITIONS, {**client, "bootstrap.servers": cluster.bootstrap}, PLAIN_RATE)
        loads = Loads(start_loads(cluster.bootstrap, options.interval), plain)
        every = [*itertools.chain.from_iterable(loads.commits.values())]
        try:
            loads.wait(time.monotonic())
            for turn in range(options.kills):
                one(cluster, loads, admin, turn, result, options.settle)
        finally:
            for load in every:
                load.close()
            plain.close()
    for load in every:
        if load.replaced:
            note(
                f"{load}: {load.replaced} new producers, the last for: {load.refusals[-1][1] if load.refusals else '?'}"
            )
    gaps = {kind: result[f"gap, {kind}"] for kind in (COORDINATED_BY_IT, PLAIN_LED)}
    result.add(
        "gap, of commits to plain records, medians", "x", operator.truediv(*(each.median for each in gaps.values()))
    )
    worst_ms = quantile(gaps[COORDINATED_BY_IT].values, 0.95)
    limit_ms = SESSION_MS + ALLOWANCE_MS
    result.bar("gap in ms of commits, coordinated by the broker, 95th percentile", worst_ms, at_most=limit_ms)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
