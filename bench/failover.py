"""How long a partition is unavailable when the broker that leads it goes: killed, or stopped cleanly.

    python -m bench failover [--kills N] [--controlled] [--partitions N] [--rate N] [--settle SECONDS]

Three real brokers without proxies, profile ``chaos`` (session 2 s), RF 3, min.insync.replicas 2, and a steady load by
one idempotent acks=all librdkafka producer to each partition, with the profile's client back-offs (printed). In turn a
partition's leader is killed with signal 9 (or asked to stop); when all partitions are acknowledged again it is
restarted, and the next one follows when every replica is in sync. A gap is the longest time between two successive
acknowledgements of a partition from the kill on. The bar is for partitions that the broker led; those it followed
wait too, until it has left the ISR, and are shown. The phases come from the nodes' journals (control.jsonl).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import create_topics, wait_in_sync
from bench.load import TopicLoad
from bench.measure import Result, note, quantile
from cluster.config.profiles import CHAOS
from tests.integration.local_cluster import LocalCluster

TOPIC = "bench"
REPLICAS = 3
#: ZooKeeper's tick, in which sessions expire, and what the election and the client may take beyond.
TICK_MS = 200
ALLOWANCE_MS = 500
CONTROLLED_BAR_MS = 500
RECOVERY_S = 60.0

#: Journal events that tell how far a failover has come, in their order.
PHASES = ("controller-elected", "brokers-changed", "partition-changed")


def phases_ms(cluster: LocalCluster, killed_ns: int) -> dict[str, float]:
    """For each event of a failover, milliseconds from the kill to its first mention in any live node's journal."""
    found: dict[str, float] = {}
    for broker_id in cluster.broker_ids:
        journal = Path(cluster.node(broker_id)) / "control.jsonl"
        for line in journal.read_text().splitlines()[-2000:]:
            entry = json.loads(line)
            after_ms = (entry["monotonic_ns"] - killed_ns) / 1e6
            if after_ms > 0:
                name = entry["event"]
                found[name] = min(after_ms, found.get(name, after_ms))
    return found


def one(cluster: LocalCluster, load: TopicLoad, admin: AdminClient, turn: int, options: argparse.Namespace) -> None:
    """One kill (or stop), recovery and restart; its figures go to ``options.result``."""
    result: Result = options.result
    state = wait_in_sync(admin, TOPIC, REPLICAS, RECOVERY_S)
    time.sleep(options.settle)  # a steady load before the kill is what is measured against
    load.wait_acknowledged(time.monotonic(), RECOVERY_S)
    victim = state[turn % len(state)].leader
    led = [number for number, each in state.items() if each.leader == victim]
    before_s, before_ns = time.monotonic(), time.monotonic_ns()
    if options.controlled:
        cluster.terminate(victim)
    else:
        cluster.kill(victim)
    load.wait_acknowledged(time.monotonic(), RECOVERY_S)
    time.sleep(0.2)  # a later stall of the same failover belongs to its gap
    gaps_ms: dict[str, list[float]] = {"led": [], "followed": []}
    for partition in load.partitions:
        gap_s = partition.longest_gap_s(before_s)
        kind = "led" if partition.partition in led else "followed"
        if gap_s is None:
            raise TimeoutError(f"partition {partition.partition} was not acknowledged after the kill")
        gaps_ms[kind].append(gap_s * 1000)
    for kind, gaps in gaps_ms.items():
        for gap in gaps:
            result.add(f"gap, {kind} by the broker", "ms", gap)
    for name, after_ms in phases_ms(cluster, before_ns).items():
        if name in PHASES:
            result.add(f"first {name} after", "ms", after_ms)
    worst = ", ".join(f"{kind} {max(gaps):.0f} ms" for kind, gaps in gaps_ms.items() if gaps)
    note(f"{turn + 1} of {options.kills}: broker {victim}, {len(led)} partitions led; worst gaps: {worst}")
    cluster.restart(victim)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--controlled", action="store_true", help="stop the broker with SIGTERM instead")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rate", type=float, default=300.0, help="records a second in all (300)")
    parser.add_argument("--settle", type=float, default=1.0, help="seconds in sync before the next (1)")
    options = parser.parse_args()
    client = {**CHAOS.producer["confluent"], "linger.ms": "0", "log_level": "2"}
    session_ms = int(CHAOS.broker["zookeeper.session.timeout.ms"])
    backoffs = {key: value for key, value in client.items() if "backoff" in key or "refresh" in key}
    name = "failover-controlled" if options.controlled else "failover"
    settings = {"kills": options.kills, "partitions": options.partitions, "records/s": options.rate}
    settings |= {"session ms": session_ms, "proxies": "none", **backoffs}
    result = options.result = Result(name, settings)
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory:
        with LocalCluster(directory) as cluster:
            create_topics(cluster.bootstrap, [NewTopic(TOPIC, options.partitions, REPLICAS)])
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
            load = TopicLoad(
                TOPIC, options.partitions, {**client, "bootstrap.servers": cluster.bootstrap}, options.rate
            )
            try:
                for turn in range(options.kills):
                    one(cluster, load, admin, turn, options)
            finally:
                load.close()
    if load.failures:
        note(f"{len(load.failures)} records failed, the first: {load.failures[0]}")
    gaps = result["gap, led by the broker"].values
    limit_ms = CONTROLLED_BAR_MS if options.controlled else session_ms + TICK_MS + ALLOWANCE_MS
    result.bar("gap in ms, led by the broker, 95th percentile", quantile(gaps, 0.95), at_most=limit_ms)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
