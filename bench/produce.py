"""Producing: librdkafka against our three brokers at RF 3, beside the same load on librdkafka's own mock cluster.

    python -m bench produce [--records N] [--rounds N]

Owns the figures, which are ratios taken in one sitting, rounds interleaved. The mock is a C server in the client's own
process that keeps nothing on disk: what it reaches is a bound on what one producer can send here, not a rival.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

VALUE = b"v" * 1000
TOPIC = "bench"
LINGER_MS = (0, 5, 50)


@contextmanager
def _cluster() -> Iterator[str]:
    """A cluster of our own for as long as the block lasts; its ``bootstrap.servers``."""
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory:
        argv = [sys.executable, "-m", "chaos.commands.main", "up", "--json", "--data", directory]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            try:
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise SystemExit("the cluster did not come up; try: gapless up")
                bootstrap = str(json.loads(line)["bootstrap.servers"])
                admin = AdminClient({"bootstrap.servers": bootstrap})
                admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(30)
                yield bootstrap
            finally:
                process.terminate()


def _produce(config: dict[str, object], records: int) -> float:
    """Thousands of records acknowledged per second by one idempotent producer with acks=all."""
    common = {"enable.idempotence": True, "acks": "all", "queue.buffering.max.messages": 200_000}
    producer = Producer({**common, **config})
    # The first record pays for connections and the producer id.
    producer.produce(TOPIC, VALUE)
    producer.flush(30)
    start = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(TOPIC, VALUE)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    left = producer.flush(120)
    elapsed = time.perf_counter() - start
    if left:
        raise SystemExit(f"{left} records were not acknowledged within two minutes")
    return records / elapsed / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=50_000, help="records a round (50000)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (3)")
    options = parser.parse_args()
    print(f"{options.records} records of {len(VALUE)} bytes, {options.rounds} rounds, medians, thousands a second")
    with _cluster() as bootstrap:
        for linger_ms in LINGER_MS:
            ours, mock = [], []
            for _ in range(options.rounds):
                ours.append(_produce({"bootstrap.servers": bootstrap, "linger.ms": linger_ms}, options.records))
                mock.append(_produce({"test.mock.num.brokers": 3, "linger.ms": linger_ms}, options.records))
            one, other = statistics.median(ours), statistics.median(mock)
            print(f"linger.ms {linger_ms:3}  ours RF 3 {one:7.1f}  mock {other:7.1f}  ratio {one / other:.2f}")


if __name__ == "__main__":
    main()
