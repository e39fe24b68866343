"""How long no transaction commits when the broker that coordinates it goes: killed with signal 9, under load.

    python -m bench coordinators [--kills N] [--interval MS] [--settle SECONDS]

Three real brokers without proxies, profile ``chaos`` (session 2 s), RF 3, min.insync.replicas 2. For each partition of
``__transaction_state`` our own client and librdkafka commit one transaction after another (two records each, in two
partitions), all at the same time. In turn the coordinator of a partition is killed; when all commit again it is
restarted, and the next one follows when every replica is in sync. A gap is the longest time between two successive
commits of a ``transactional.id`` from the kill on. Owns the bar: session timeout plus 1 s at the 95th percentile, for
the ids that the broker coordinated. The others, whose records it may have led, are shown beside them.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time

from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import create_topics, wait_in_sync
from bench.commits import FACTORIES, CommitLoad
from bench.failover import PHASES, phases_ms
from bench.measure import Result, note, quantile
from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.config.profiles import CHAOS
from cluster.coordinator.partitioning import partition_for
from loadgen.settings import CONFLUENT
from tests.integration.local_cluster import LocalCluster

TOPIC = "bench"
PARTITIONS = 6
REPLICAS = 3
COORDINATED = int(CHAOS.broker["transaction.state.log.num.partitions"])
SESSION_MS = int(CHAOS.broker["zookeeper.session.timeout.ms"])
ALLOWANCE_MS = 1000
RECOVERY_S = 60.0
#: Commits of every id after which all is as it was.
EACH = 3


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


def one(
    cluster: LocalCluster,
    loads: dict[int, list[CommitLoad]],
    admin: AdminClient,
    turn: int,
    result: Result,
    settle: float,
) -> None:
    """One kill, recovery and restart; its figures go to ``result``."""
    wait_in_sync(admin, TOPIC, REPLICAS, RECOVERY_S)
    state = wait_in_sync(admin, TRANSACTIONS_TOPIC, REPLICAS, RECOVERY_S)
    time.sleep(settle)  # a steady load before the kill is what is measured against
    wait_committed(loads, time.monotonic())
    victim = state[turn % COORDINATED].leader
    killed_s, killed_ns = time.monotonic(), time.monotonic_ns()
    cluster.kill(victim)
    wait_committed(loads, time.monotonic())
    time.sleep(0.2)  # a later stall of the same failover belongs to its gap
    worst: dict[str, float] = {}
    for number, some in loads.items():
        kind = "coordinated by the broker" if state[number].leader == victim else "coordinated elsewhere"
        for load in some:
            gap_s = load.longest_gap_s(killed_s)
            assert gap_s is not None, load
            result.add(f"gap, {kind}, {load.client}", "ms", gap_s * 1000)
            result.add(f"gap, {kind}", "ms", gap_s * 1000)
            worst[f"{kind}, {load.client}"] = max(gap_s * 1000, worst.get(f"{kind}, {load.client}", 0.0))
    for name, after_ms in phases_ms(cluster, killed_ns).items():
        if name in PHASES:
            result.add(f"first {name} after", "ms", after_ms)
    note(f"kill {turn + 1}: broker {victim}; " + ", ".join(f"{kind} {gap:.0f} ms" for kind, gap in worst.items()))
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
        create_topics(cluster.bootstrap, [NewTopic(TOPIC, PARTITIONS, REPLICAS)])
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        loads = start_loads(cluster.bootstrap, options.interval)
        try:
            wait_committed(loads, time.monotonic())
            for turn in range(options.kills):
                one(cluster, loads, admin, turn, result, options.settle)
        finally:
            for load in itertools.chain.from_iterable(loads.values()):
                load.close()
    for load in itertools.chain.from_iterable(loads.values()):
        if load.replaced:
            note(
                f"{load}: {load.replaced} new producers, the last for: {load.refusals[-1][1] if load.refusals else '?'}"
            )
    gaps = result["gap, coordinated by the broker"].values
    limit_ms = SESSION_MS + ALLOWANCE_MS
    result.bar(
        "gap in ms of commits, coordinated by the broker, 95th percentile", quantile(gaps, 0.95), at_most=limit_ms
    )
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
