"""A producer that does everything right beside an attack, and what became of its records.

Owns one native producer at a steady pace, the time of each acknowledgement, and the reading back at the end. Does not
own the broker, nor what is sent to it meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster.client import Consumer, Producer
from tests.support.attack import alongside

TOPIC = "bystander"
#: Between two of its records: it is a client, not a load.
PAUSE_S = 0.02
PATIENCE_S = 60.0


class Bystander:
    """One producer with acks=all. ``times_s`` are its acknowledgements', in order."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.sent = 0
        self.acknowledged: dict[int, int] = {}
        self.times_s: list[float] = []
        self.errors: list[str] = []

    def __repr__(self) -> str:
        return f"Bystander({len(self.acknowledged)} of {self.sent} acknowledged, p99 {self.p99_ms():.0f} ms)"

    def p99_ms(self) -> float:
        """The 99th percentile from ``send`` to the acknowledgement."""
        ordered = sorted(self.times_s)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1000 if ordered else 0.0

    def run(self, stop: threading.Event) -> None:
        with Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "linger.ms": "0"}) as producer:
            while not stop.wait(PAUSE_S):
                self._send(producer)
            producer.flush(PATIENCE_S)

    def _send(self, producer: Producer) -> None:
        number, begun = self.sent, time.monotonic()
        self.sent += 1

        def delivered(error: Any, metadata: Any) -> None:
            if error is not None:
                self.errors.append(f"record {number}: {error}")
                return
            self.times_s.append(time.monotonic() - begun)
            self.acknowledged[number] = metadata.offset

        producer.send(TOPIC, b"%d" % number, partition=0, on_delivery=delivered)

    def missing(self) -> list[str]:
        """Read everything back: what is wrong with it, one line each."""
        wrong = list(self.errors)
        if len(self.acknowledged) + len(self.errors) != self.sent:
            wrong.append(f"{self.sent} were sent, {len(self.acknowledged)} acknowledged")
        found: list[tuple[int, int]] = []
        deadline = time.monotonic() + PATIENCE_S
        with Consumer({"bootstrap.servers": self._bootstrap}) as consumer:
            consumer.assign([(TOPIC, 0)])
            consumer.seek_to_beginning()
            while len(found) < len(self.acknowledged) and time.monotonic() < deadline:
                found += [(int(record.value or b"-1"), record.offset) for record in consumer.poll(0.5)]
        if found != sorted(self.acknowledged.items()):
            lost = sorted(self.acknowledged.items() - set(found))
            wrong.append(
                f"{len(found)} records were read, {len(self.acknowledged)} acknowledged; not there: {lost[:5]}"
            )
        return wrong


@contextmanager
def beside(port: int) -> Iterator[Bystander]:
    """A producer at work while the block runs; its topic is there. Read ``missing`` after the block."""
    made = Bystander(f"127.0.0.1:{port}")
    with alongside(made):
        yield made
