"""Many partitions: creating them, starting with them, and what they cost while no one uses them.

    python -m bench partitions [--partitions N] [--idle SECONDS] [--restarts N]

Three brokers without proxies, profile ``chaos``, one topic with RF 3. Measured: until all partitions are led and in
sync after the creation; memory, CPU and open files of each broker when idle; and, for each restart of all brokers
together (stopped cleanly; then once killed), until all are led and in sync again and a record to each of ten of
them is acknowledged. The CPU of all brokers up to there is shown beside the time, which other users of the machine
stretch. Owns the bars for 2,000 partitions: 10 s, 250 MB and 5 % of a core for each broker.

Whatever does not come within its limit is named, and ends the run; what was measured until then is shown anyway.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence

import psutil
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import create_topics, wait_in_sync
from bench.measure import Result, cpu_s, note
from tests.integration.local_cluster import LocalCluster

TOPIC = "bench"
REPLICAS = 3
START_BAR_S = 10.0
MEMORY_BAR_MB = 250.0
IDLE_BAR_PERCENT = 5.0
#: How long a run waits for a topic, for all partitions to be in sync, or for ten records: many times the bar.
LIMIT_S = 120.0
#: How long for a broker to end after SIGTERM.
STOP_S = 60.0


def produce_to(bootstrap: str, partitions: Sequence[int]) -> None:
    """One acks=all record to each of these. Raises ``TimeoutError`` if any is not acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 2,
            "message.timeout.ms": int(LIMIT_S * 1000),
        }
    )  # fmt: skip
    missing = set(partitions)
    for partition in partitions:
        producer.produce(
            TOPIC,
            b"first",
            partition=partition,
            on_delivery=lambda error, message: None if error else missing.discard(message.partition()),
        )
    producer.flush(LIMIT_S)
    if missing:
        raise TimeoutError(f"after {LIMIT_S:g} s records to the partitions {sorted(missing)} were not acknowledged")


def brokers_cpu_s(cluster: LocalCluster) -> float:
    """CPU seconds of the brokers that run, since each began."""
    return sum(cpu_s(child.pid) for child in cluster.children.values())


def serving(
    cluster: LocalCluster, result: Result, options: argparse.Namespace, what: str, begun: float, cpu_before_s: float
) -> None:
    """Time and CPU since ``begun`` until every partition is in sync, and until ten of them took a record."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    wait_in_sync(admin, TOPIC, REPLICAS, LIMIT_S)
    in_sync_s = time.monotonic() - begun
    result.add(f"all in sync after {what}", "s", in_sync_s)
    result.add(f"CPU of all brokers until in sync after {what}", "s", brokers_cpu_s(cluster) - cpu_before_s)
    produce_to(cluster.bootstrap, range(0, options.partitions, max(1, options.partitions // 10)))
    served_s = time.monotonic() - begun
    result.add(f"ten records acknowledged after {what}", "s", served_s)
    note(f"{what}: in sync after {in_sync_s:.1f} s, served after {served_s:.1f} s")


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
    """Stop all brokers, start all again. Raises ``TimeoutError``."""
    begun = time.monotonic()
    for child in cluster.children.values():
        if killed:
            child.kill()
        else:
            child.terminate()
    for broker_id, child in cluster.children.items():
        if child.wait(STOP_S) is None:
            raise TimeoutError(f"broker {broker_id} did not end within {STOP_S:g} s of SIGTERM")
    if not killed:
        result.add("all brokers stopped", "s", time.monotonic() - begun)
    what = "a kill" if killed else "a stop"
    begun = time.monotonic()
    cluster.start_all()
    result.add(f"brokers started after {what}", "s", time.monotonic() - begun)
    serving(cluster, result, options, what, begun, 0.0)


def measure(cluster: LocalCluster, result: Result, options: argparse.Namespace) -> None:
    """All of it, in order. Raises ``TimeoutError``."""
    begun, cpu_before_s = time.monotonic(), brokers_cpu_s(cluster)
    create_topics(cluster.bootstrap, [NewTopic(TOPIC, options.partitions, REPLICAS)], LIMIT_S)
    result.add("topic answered", "s", time.monotonic() - begun)
    serving(cluster, result, options, "creation", begun, cpu_before_s)
    time.sleep(5)  # what creation left behind (checkpoints, elections) is not idling
    idle(cluster, result, options.idle)
    for _ in range(options.restarts):
        restart(cluster, result, options, killed=False)
    time.sleep(10)  # also the preferred leaders' return, which begins 5 s after the controller did
    idle(cluster, result, options.idle)
    restart(cluster, result, options, killed=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds of idleness to measure (20)")
    parser.add_argument("--restarts", type=int, default=3)
    options = parser.parse_args()
    result = Result("partitions", {"partitions": options.partitions, "RF": REPLICAS, "brokers": 3})
    cut_short = None
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory:
        with LocalCluster(directory) as cluster:
            try:
                measure(cluster, result, options)
            except (TimeoutError, KafkaException) as error:
                cut_short = error
    bars = (
        ("seconds until created and in sync", "all in sync after creation", START_BAR_S),
        ("seconds until a stopped cluster serves", "ten records acknowledged after a stop", START_BAR_S),
        ("seconds until a killed cluster serves", "ten records acknowledged after a kill", START_BAR_S),
        ("idle CPU in % of a core", "idle CPU of a broker", IDLE_BAR_PERCENT),
        ("MB of a broker", "memory of a broker", MEMORY_BAR_MB),
    )
    for text, figure, limit in bars:
        if figure in result:
            values = result[figure]
            result.bar(text, max(values.values) if figure.startswith("memory") else values.median, at_most=limit)
    status = result.finish()
    if cut_short is not None:
        print(f"CUT SHORT: {cut_short}")
    return 1 if cut_short is not None else status


if __name__ == "__main__":
    sys.exit(main())
