"""What transactions cost our producer: throughput with commits, and the time of a commit.

    python -m bench transactions [--rounds N] [--seconds S] [--commits N]

One broker, our producer in a process of its own, six partitions, 1 KB and 128 KB batches: idempotent, and in
transactions that are committed every 100 ms, in turns. Owns the bar that transactions bring at least 0.85 of the
records/s. Then three brokers: the time of commit_transaction when one record for each of six partitions is
acknowledged, beside that of one record with acks=all, in turns; owns the bar of five times at the median. A whole
transaction, from begin to commit, is told beside.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack

from confluent_kafka.admin import NewTopic

from bench.client import PeerProcess
from bench.cluster import create_topics, one_broker, settle_disk
from bench.measure import Result, note, quantile, rotated
from cluster.client import Producer
from tests.integration.local_cluster import LocalCluster

TOPIC = "bench"
PARTITIONS = 6
COMMIT_MS = 100
#: Bytes of a batch and of the values in it.
SIZES = ((1024, 100), (131_072, 1000))
ALONE = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
#: How many transactions and single records take turns in one round.
STRIDE = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one variant in one round (2)")
    parser.add_argument("--commits", type=int, default=200, help="whose time is taken (200)")
    options = parser.parse_args()
    result = Result("transactions", {"rounds": options.rounds, "commit every ms": COMMIT_MS})
    _throughput(result, options.rounds, options.seconds)
    _commits(result, options.commits)
    return result.finish()


def _throughput(result: Result, rounds: int, seconds: float) -> None:
    with ExitStack() as stack:
        peer = stack.enter_context(PeerProcess("native"))
        cluster = stack.enter_context(one_broker({TOPIC: PARTITIONS}, ALONE))
        job = {"bootstrap": cluster.bootstrap, "topic": TOPIC, "partitions": PARTITIONS, "seconds": seconds}
        for batch_bytes, value_bytes in SIZES:
            name = f"{batch_bytes // 1024} KB batches"
            for round_number in range(rounds):
                note(f"{name}: round {round_number + 1} of {rounds}")
                for variant in rotated(["idempotent", "transactions"], round_number):
                    settle_disk(cluster.directory)
                    turn = {**job, "batch_bytes": batch_bytes, "value_bytes": value_bytes}
                    if variant == "transactions":
                        turn["commit_ms"] = COMMIT_MS
                    peer.flood(result, f"{name} {variant}", turn, cluster.children[1].pid)
            result.ratios(f"{name}, CPU", f"{name} transactions CPU", f"{name} idempotent CPU")
            ratio = result.ratios(f"{name}, records/s", f"{name} transactions", f"{name} idempotent")
            result.bar(f"{name}, records/s in transactions to idempotent", ratio.median, at_least=0.85)


def _commits(result: Result, commits: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory,
        LocalCluster(directory) as cluster,
        Producer({"bootstrap.servers": cluster.bootstrap}) as plain,
        Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": TOPIC}) as producer,
    ):
        create_topics(cluster.bootstrap, [NewTopic(TOPIC, PARTITIONS, 3)])
        producer.init_transactions()
        for number in range(-STRIDE, commits, STRIDE):
            note(f"commits: {max(0, number)} of {commits}")
            for _ in range(STRIDE):
                trip_ms, commit_ms, whole_ms = _round_trip(plain), *_transaction(producer)
                if number >= 0:
                    result.add("one record, acks=all", "ms", trip_ms)
                    result.add(f"commit of {PARTITIONS} partitions", "ms", commit_ms)
                    result.add(f"transaction of {PARTITIONS} partitions", "ms", whole_ms)
    medians = [
        quantile(result[name].values, 0.5) for name in (f"commit of {PARTITIONS} partitions", "one record, acks=all")
    ]
    result.bar("a commit at the median, to one record with acks=all", medians[0] / medians[1], at_most=5.0)


def _round_trip(plain: Producer) -> float:
    begun_s = time.perf_counter()
    plain.send(TOPIC, bytes(100), partition=0).result(30)
    return (time.perf_counter() - begun_s) * 1000


def _transaction(producer: Producer) -> tuple[float, float]:
    """Milliseconds of the commit, and of the whole."""
    begun_s = time.perf_counter()
    producer.begin_transaction()
    for future in [producer.send(TOPIC, bytes(100), partition=partition) for partition in range(PARTITIONS)]:
        future.result(30)
    sent_s = time.perf_counter()
    producer.commit_transaction()
    ended_s = time.perf_counter()
    return (ended_s - sent_s) * 1000, (ended_s - begun_s) * 1000


if __name__ == "__main__":
    sys.exit(main())
