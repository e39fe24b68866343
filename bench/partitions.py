"""Many partitions: creating them, starting with them, and what they cost while nobody uses them.

    python -m bench partitions [--partitions N] [--idle SECONDS] [--restarts N]

Three brokers without proxies, profile ``chaos``, one topic with RF 3. Measured: until all partitions are led and in
sync after the creation; memory, CPU and open files of each broker when idle; and, for each restart of all brokers
together (stopped in good order; then once killed), until all are led and in sync again and a record to each of ten of
them is acknowledged. Owns the bars for 2,000 partitions: 10 s, 250 MB and 5 % of a core for each broker.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import create_topics, wait_in_sync
from bench.measure import Result, cpu_s, note
from tests.integration.local_cluster import LocalCluster

TOPIC = "bench"
REPLICAS = 3
START_BAR_S = 10.0
MEMORY_BAR_MB = 250.0
IDLE_BAR_PERCENT = 5.0
LIMIT_S = 240.0
STOP_S = 120.0


def produce_to(bootstrap: str, partitions: Sequence[int]) -> None:
    """One acks=all record to each of these. Raises ``TimeoutError`` if any is not acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 2})
    for partition in partitions:
        producer.produce(TOPIC, b"first", partition=partition)
    if left := producer.flush(LIMIT_S):
        raise TimeoutError(f"{left} records were not acknowledged")


def serving_after(cluster: LocalCluster, begun: float, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds since ``begun`` until every partition is in sync, and until ten of them took a record."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    wait_in_sync(admin, TOPIC, REPLICAS, LIMIT_S)
    in_sync_s = time.monotonic() - begun
    produce_to(cluster.bootstrap, range(0, options.partitions, max(1, options.partitions // 10)))
    return in_sync_s, time.monotonic() - begun


def idle(cluster: LocalCluster, result: Result, seconds: float) -> None:
    """What each broker costs while nothing is asked of it."""
    pids = {broker_id: child.pid for broker_id, child in cluster.children.items()}
    before = {broker_id: cpu_s(pid) for broker_id, pid in pids.items()}
    begun = time.monotonic()
    time.sleep(seconds)  # the span over which CPU is counted
    elapsed = time.monotonic() - begun
    for broker_id, pid in pids.items():
        process = psutil.Process(pid)
        result.add("idle CPU of a broker", "% of a core", (cpu_s(pid) - before[broker_id]) / elapsed * 100)
        result.add("memory of a broker", "MB", process.memory_info().rss / 1e6)
        result.add("open files of a broker", "files", process.num_fds())


def restart(cluster: LocalCluster, result: Result, options: argparse.Namespace, *, killed: bool) -> None:
    """Stop all brokers, start all again."""
    begun = time.monotonic()
    for child in cluster.children.values():
        if killed:
            child.kill()
        else:
            child.terminate()
    for child in cluster.children.values():
        if child.wait(STOP_S) is None:
            raise TimeoutError("a broker did not stop")
    if not killed:
        result.add("all brokers stopped", "s", time.monotonic() - begun)
    how = "kill" if killed else "stop"
    begun = time.monotonic()
    cluster.start_all()
    result.add(f"brokers started after a {how}", "s", time.monotonic() - begun)
    in_sync_s, served_s = serving_after(cluster, begun, options)
    result.add(f"all in sync after a {how}", "s", in_sync_s)
    result.add(f"ten records acknowledged after a {how}", "s", served_s)
    note(f"restart after a {how}: in sync after {in_sync_s:.1f} s, served after {served_s:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds of idleness to measure (20)")
    parser.add_argument("--restarts", type=int, default=3)
    options = parser.parse_args()
    result = Result("partitions", {"partitions": options.partitions, "RF": REPLICAS, "brokers": 3})
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory:
        with LocalCluster(directory) as cluster:
            begun = time.monotonic()
            create_topics(cluster.bootstrap, [NewTopic(TOPIC, options.partitions, REPLICAS)], LIMIT_S)
            result.add("topic answered", "s", time.monotonic() - begun)
            in_sync_s, served_s = serving_after(cluster, begun, options)
            result.add("created and in sync", "s", in_sync_s)
            result.add("created, and ten records acknowledged", "s", served_s)
            note(f"created: in sync after {in_sync_s:.1f} s")
            time.sleep(5)  # what creation left behind (checkpoints, elections) is not idling
            idle(cluster, result, options.idle)
            for _ in range(options.restarts):
                restart(cluster, result, options, killed=False)
            idle(cluster, result, options.idle)
            restart(cluster, result, options, killed=True)
    result.bar("seconds until created and in sync", result["created and in sync"].median, at_most=START_BAR_S)
    served = result["ten records acknowledged after a stop"].median
    result.bar("seconds until a restarted cluster serves", served, at_most=START_BAR_S)
    result.bar("MB of a broker", max(result["memory of a broker"].values), at_most=MEMORY_BAR_MB)
    result.bar("idle CPU in % of a core", result["idle CPU of a broker"].median, at_most=IDLE_BAR_PERCENT)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
