"""Consuming with librdkafka at RF 1: MB/s, and the CPU of the broker and of the client for each GB.

    python -m bench consume [--rounds N] [--megabytes N] [--values BYTES,...] [--before TREE] [--property KEY=VALUE ...]

One broker by itself, four partitions, batches of 128 KB of 1 KB values, no compression. A consumer of librdkafka reads
all of them from the beginning, again and again; its queue is large enough for all, so that it never pauses. What it
reads is in the page cache: that is how a consumer reads that keeps up, and a disk would only be the same for both.
``--before`` is a directory or a commit, whose broker takes turns with ours in each round. Owns the bars for that: at
least 1.2x its MB/s, at most 0.7x its CPU for a GB. ``--property`` is for our broker alone, so that one tree can be
compared with itself (``--before HEAD --property socket.send.buffer.bytes=262144``).
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.measure import Result, cpu_s, note, rotated
from bench.trees import BEFORE, NOW, LoneBroker, brokers

PARTITIONS = 4
BATCH_BYTES = 131_072
#: What a broker that sends ranges of files had to reach, to one that copied them.
LEAST_SPEED, MOST_CPU = 1.2, 0.7
WAIT_S = 60.0


class Turn(NamedTuple):
    """What one turn took, in seconds: from the first records to the last, and of CPU."""

    wall_s: float
    broker_s: float
    client_s: float


def fill(broker: LoneBroker, topic: str, value_bytes: int, records: int) -> None:
    """Write ``records`` to each partition. Raises if some are not acknowledged."""
    config = {"linger.ms": 50, "batch.size": BATCH_BYTES, "batch.num.messages": 100_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2, **config})
    value = b"v" * value_bytes
    for _ in range(records):
        for partition in range(PARTITIONS):
            while True:
                try:
                    producer.produce(topic, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.05)
    if left := producer.flush(WAIT_S):
        raise SystemExit(f"{left} records were not acknowledged within {WAIT_S:g} s")


def consume(broker: LoneBroker, topic: str, records: int) -> Turn:
    """Read ``records`` of each partition with a new consumer. Raises if they do not come."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "queued.min.messages": 10_000_000,
            "queued.max.messages.kbytes": 2_097_151,
            "log_level": 2,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    # Connections and metadata are not what is measured: the clocks run from the first record on.
    left, deadline = PARTITIONS * records, time.perf_counter() + WAIT_S
    first = consumer.consume(1, WAIT_S)
    left -= len(first)
    begun, broker_before, client_before = time.perf_counter(), cpu_s(broker.pid), time.process_time()
    while left > 0:
        # No more than there are: for the others it would wait its whole second.
        messages = consumer.consume(min(10_000, left), 1.0)
        if time.perf_counter() > deadline or any(message.error() for message in messages):
            raise SystemExit(f"{left} records of {topic} did not come: {[m.error() for m in messages if m.error()]}")
        left -= len(messages)
    ended = time.perf_counter()
    turn = Turn(ended - begun, cpu_s(broker.pid) - broker_before, time.process_time() - client_before)
    consumer.close()
    return turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=400, help="of one variant in one round (400)")
    parser.add_argument("--values", default="1000", help="bytes of a value (1000)")
    parser.add_argument("--before", metavar="TREE", help="a directory or commit to compare with")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="of our broker")
    options = parser.parse_args()
    properties = dict(each.split("=", 1) for each in options.property)
    settings = {"rounds": options.rounds, "megabytes": options.megabytes, "before": options.before}
    result = Result("consume", {**settings, **properties})
    sizes = [int(size) for size in options.values.split(",")]
    with brokers(options.before, {f"values-{size}": PARTITIONS for size in sizes}, properties) as variants:
        for size in sizes:
            topic = f"values-{size}"
            records = options.megabytes * 1_000_000 // size // PARTITIONS
            gigabytes = records * PARTITIONS * size / 1e9
            for broker in variants.values():
                fill(broker, topic, size, records)
                consume(broker, topic, records)
            for round_number in range(options.rounds):
                note(f"values of {size} bytes, round {round_number + 1} of {options.rounds}")
                for name in rotated(list(variants), round_number):
                    turn = consume(variants[name], topic, records)
                    result.add(f"{size} {name}", "MB/s", gigabytes * 1000 / turn.wall_s)
                    result.add(f"{size} {name} broker CPU", "s/GB", turn.broker_s / gigabytes)
                    result.add(f"{size} {name} client CPU", "s/GB", turn.client_s / gigabytes)
            if options.before is not None:
                _compare(result, size)
    return result.finish()


def _compare(result: Result, size: int) -> None:
    speed = result.ratios(f"{size} MB/s ratio", f"{size} {NOW}", f"{size} {BEFORE}")
    result.bar(f"values of {size} bytes, MB/s to before", speed.median, at_least=LEAST_SPEED)
    cpu = result.ratios(f"{size} broker CPU ratio", f"{size} {NOW} broker CPU", f"{size} {BEFORE} broker CPU")
    result.bar(f"values of {size} bytes, broker CPU to before", cpu.median, at_most=MOST_CPU)


if __name__ == "__main__":
    sys.exit(main())
