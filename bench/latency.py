"""Acknowledgement latency at a low rate: our RF 1 and RF 3 beside librdkafka's mock cluster, in one sitting.

    python -m bench latency [--rounds N] [--records N] [--rate N] [--before TREE]

One idempotent acks=all librdkafka producer, linger 0, 100 records a second, one partition, three brokers without
proxies. A latency is the time from the call of ``produce`` to the delivery callback. Rounds are interleaved. Owns the
bars for the median: RF 1 at most twice the mock's, RF 3 at most four times our RF 1. ``--before`` is a directory or a
commit, whose cluster takes turns with ours: the median of each is at most 1.05x of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from bench.cluster import create_topics
from bench.measure import Result, note, quantile, rotated
from bench.trees import BEFORE, NOW, clusters

VALUE = b"v" * 1000
#: What the median may be of that of ``--before``.
MOST_OF_BEFORE = 1.05


def latencies_ms(config: Mapping[str, object], topic: str, records: int, rate: float) -> list[float]:
    """The latencies of ``records`` records that are sent one by one at ``rate``. Raises if one is not acknowledged."""
    producer = Producer({"enable.idempotence": True, "acks": "all", "linger.ms": 0, "log_level": 2, **config})
    taken: list[float] = []

    def send() -> None:
        begun = time.perf_counter()

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                raise SystemExit(f"{topic}: {error}")
            taken.append((time.perf_counter() - begun) * 1000)

        producer.produce(topic, VALUE, partition=0, on_delivery=delivered)

    for _ in range(10):
        send()
        producer.flush(30)
    taken.clear()
    due = time.perf_counter()
    for _ in range(records):
        send()
        due += 1 / rate
        while (left := due - time.perf_counter()) > 0:
            producer.poll(left)
    producer.flush(30)
    if len(taken) != records:
        raise SystemExit(f"{topic}: {records - len(taken)} records were not acknowledged")
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, default=500, help="of one variant in one round (500)")
    parser.add_argument("--rate", type=float, default=100.0, help="records a second (100)")
    parser.add_argument("--before", metavar="TREE", help="a directory or commit to compare with")
    options = parser.parse_args()
    settings = {"rounds": options.rounds, "records a round": options.records, "records/s": options.rate}
    result = Result("latency", {**settings, "before": options.before})
    with clusters(options.before) as found:
        variants: dict[str, tuple[dict[str, object], str]] = {"mock": ({"test.mock.num.brokers": 1}, "mock")}
        for name, cluster in found.items():
            alone = NewTopic("rf1", 1, replica_assignment=[[1]], config={"min.insync.replicas": "1"})
            create_topics(cluster.bootstrap, [alone, NewTopic("rf3", 1, replica_assignment=[[1, 2, 3]])])
            for kind, topic in (("RF 1", "rf1"), ("RF 3", "rf3")):
                figure = kind if name == NOW else f"{name} {kind}"
                variants[figure] = ({"bootstrap.servers": cluster.bootstrap}, topic)
        for round_number in range(options.rounds):
            note(f"round {round_number + 1} of {options.rounds}")
            for variant in rotated(list(variants), round_number):
                config, topic = variants[variant]
                taken = latencies_ms(config, topic, options.records, options.rate)
                result.add(f"{variant} p50", "ms", quantile(taken, 0.5))
                result.add(f"{variant} p99", "ms", quantile(taken, 0.99))
    limits = [("RF 1", "mock", 2.0), ("RF 3", "RF 1", 4.0)]
    if options.before is not None:
        limits += [(kind, f"{BEFORE} {kind}", MOST_OF_BEFORE) for kind in ("RF 1", "RF 3")]
    for one, other, limit in limits:
        ratio = result.ratios(f"p50 of {one} to {other}", f"{one} p50", f"{other} p50")
        result.bar(f"p50 of {one} to {other}", ratio.median, at_most=limit)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
