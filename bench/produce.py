"""Producing with librdkafka: our RF 1 and RF 3 beside librdkafka's own mock cluster, in one sitting.

    python -m bench produce [--rounds N] [--megabytes N] [--batches BYTES,...] [--peer NAME=BOOTSTRAP ...]
                            [--before TREE]

One idempotent acks=all producer, 1 KB values, linger 5 ms, four partitions. Ours is one cluster of three brokers
without proxies: one broker leads all of the topics with RF 1 and RF 3, so that the replicas are the difference; a third
topic, ``RF 3 spread``, is led by all three brokers and shown without a bar. The mock is a C server in the client's own
process that keeps nothing on disk: what it reaches is a bound on what one producer can send here, not a rival. Rounds
are interleaved, ratios are taken round by round, and before each turn the page cache is emptied (``settle_disk``).
``--peer`` adds another cluster (an Apache Kafka, say; it must let clients create topics with RF 1 and 3) to the
sitting. ``--before`` is a directory or a commit, whose cluster takes turns with ours; the ratios to it are shown. Owns
the bars for RF 1 to the mock (0.65, 0.6, 0.4 at 16 KB, 128 KB, 1 MB), for RF 3 to RF 1 (0.15, 0.35, 0.5), and "at least
0.95x of before".
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from bench.cluster import create_topics, settle_disk
from bench.measure import Result, cpu_s, note, rotated
from bench.trees import BEFORE, NOW, clusters

VALUE = b"v" * 1000
PARTITIONS = 4
#: batch.size -> what RF 1 must reach of the mock, and RF 3 of RF 1; then what is aimed at.
BARS = {16_384: (0.65, 0.15), 131_072: (0.6, 0.35), 1_000_000: (0.4, 0.5)}
AIMS = {16_384: (0.8, 0.25), 131_072: (0.8, 0.45), 1_000_000: (0.7, 0.6)}
#: What is left of the throughput of ``--before``.
LEAST_OF_BEFORE = 0.95
FLUSH_S = 120.0
OURS = "ours"


class Variant(NamedTuple):
    """A cluster and a topic to produce to. ``pids`` are its brokers, if they are ours to look at."""

    name: str
    topic: str
    config: dict[str, object]
    pids: list[int]


def produce(config: Mapping[str, object], topic: str, records: int) -> tuple[float, float]:
    """Seconds, and CPU seconds of this process, until ``records`` are acknowledged. Raises if some are not."""
    common = {"enable.idempotence": True, "acks": "all", "linger.ms": 5, "log_level": 2, "batch.num.messages": 100_000}
    producer = Producer({**common, "queue.buffering.max.messages": 100_000, **config})
    # The first records pay for connections and the producer id.
    for partition in range(PARTITIONS):
        producer.produce(topic, VALUE, partition=partition)
    if producer.flush(FLUSH_S):
        raise SystemExit(f"{topic}: not even the first records were acknowledged")
    begun, before = time.perf_counter(), time.process_time()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.05)
    if left := producer.flush(FLUSH_S):
        raise SystemExit(f"{topic}: {left} records were not acknowledged within two minutes")
    return time.perf_counter() - begun, time.process_time() - before


def topics_of(ids_known: bool) -> dict[str, NewTopic]:
    """The topics of one cluster by what they show. Only where the brokers' ids are known can we say who leads."""
    stamp = int(time.time())
    kinds: dict[str, tuple[int, Mapping[str, object]]] = {
        "RF 1": (1, {"replica_assignment": [[1]] * PARTITIONS}),
        "RF 3": (3, {"replica_assignment": [[1, 2, 3]] * PARTITIONS}),
        "RF 3 spread": (3, {"replica_assignment": [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]]}),
    }
    return {
        kind: NewTopic(
            f"bench-{kind.lower().replace(' ', '-')}-{stamp}",
            PARTITIONS,
            config={"min.insync.replicas": str(min(2, factor))},
            **(where if ids_known else {"replication_factor": factor}),
        )
        for kind, (factor, where) in kinds.items()
        if ids_known or kind != "RF 3 spread"
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=150, help="of one variant in one round (150)")
    parser.add_argument("--batches", default=",".join(map(str, BARS)), help="values of batch.size")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=BOOTSTRAP", help="another cluster")
    parser.add_argument("--before", metavar="TREE", help="a directory or commit to compare with")
    options = parser.parse_args()
    records = options.megabytes * 1_000_000 // len(VALUE)
    sizes = [int(size) for size in options.batches.split(",")]
    settings = {"rounds": options.rounds, "records a round": records, "linger ms": 5}
    result = Result("produce", {**settings, "before": options.before})
    with clusters(options.before) as trees:
        found = {OURS if name == NOW else name: cluster for name, cluster in trees.items()}
        addresses = {name: cluster.bootstrap for name, cluster in found.items()}
        addresses |= dict(peer.split("=", 1) for peer in options.peer)
        variants = [Variant("mock", "mock", {"test.mock.num.brokers": 1}, [])]
        for name, bootstrap in addresses.items():
            pids = found[name].pids if name in found else []
            for kind, topic in topics_of(name in found).items():
                create_topics(bootstrap, [topic])
                variants.append(Variant(f"{name} {kind}", topic.topic, {"bootstrap.servers": bootstrap}, pids))
        for variant in variants:
            produce(variant.config, variant.topic, records // 10)
        for size in sizes:
            for round_number in range(options.rounds):
                note(f"batch.size {size}, round {round_number + 1} of {options.rounds}")
                for variant in rotated(variants, round_number):
                    settle_disk(*(cluster.directory for cluster in found.values()))
                    _measure(result, variant, size, records)
            _compare(result, size, has_before=BEFORE in found)
    return result.finish()


def _measure(result: Result, variant: Variant, size: int, records: int) -> None:
    figure = f"{size} {variant.name}"
    brokers_s = sum(map(cpu_s, variant.pids))
    elapsed_s, client_s = produce({**variant.config, "batch.size": size}, variant.topic, records)
    result.add(figure, "thousand records/s", records / elapsed_s / 1000)
    result.add(f"{figure} client CPU", "us/record", client_s / records * 1e6)
    if variant.pids:
        spent_s = sum(map(cpu_s, variant.pids)) - brokers_s
        result.add(f"{figure} brokers CPU", "us/record", spent_s / records * 1e6)


def _compare(result: Result, size: int, has_before: bool) -> None:
    ratios = ((f"{OURS} RF 1", "mock"), (f"{OURS} RF 3", f"{OURS} RF 1"))
    for (one, other), least, aim in zip(ratios, BARS.get(size, ()), AIMS.get(size, ()), strict=False):
        ratio = result.ratios(f"{size} {one} to {other}", f"{size} {one}", f"{size} {other}")
        result.bar(f"batch.size {size}, {one} to {other} (aim {aim})", ratio.median, at_least=least)
    for kind in ("RF 1", "RF 3", "RF 3 spread") if has_before else ():
        now, then = f"{size} {OURS} {kind}", f"{size} {BEFORE} {kind}"
        ratio = result.ratios(f"{now} to before", now, then)
        result.bar(f"batch.size {size}, {kind} to before", ratio.median, at_least=LEAST_OF_BEFORE)
        result.ratios(f"{now} brokers CPU to before", f"{now} brokers CPU", f"{then} brokers CPU")


if __name__ == "__main__":
    sys.exit(main())
