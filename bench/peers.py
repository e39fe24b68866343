"""The producers that are compared, each behind the same two jobs, in a process of its own.

``python -m bench.peers NAME`` reads one job per line (JSON) from standard input and answers one line each: ``flood``
sends as fast as it can for a while and waits for all acknowledgements, ``trickle`` sends one by one at a rate and
tells how long each acknowledgement took. All are idempotent with acks=all unless the job says otherwise, and choose no
partition themselves. Owns how each client is configured and driven as its own documentation would have it; the process
is what its CPU time is measured by.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

#: How many records are sent between two looks at the clock.
_STRIDE = 500
#: Records that librdkafka's queue holds; the others bound theirs by bytes (32 MB, their default).
_QUEUE = 100_000

Job = dict[str, Any]
#: Milliseconds from the call of send to the acknowledgement, of each record.
Latencies = list[float]


class PeerClient(ABC):
    """One client. ``open`` comes first; nothing of a job remains after ``close``."""

    def flood(self, job: Job) -> dict[str, float]:
        """Send for ``job["seconds"]``; records, seconds and CPU seconds until the last was acknowledged."""
        self.open(job, linger_ms=5)
        value, partitions = bytes(job["value_bytes"]), job["partitions"]
        self.send_many(value, range(partitions))
        self.flush()
        begun, cpu = time.perf_counter(), time.process_time()
        records = 0
        while time.perf_counter() - begun < job["seconds"]:
            self.send_many(value, [number % partitions for number in range(records, records + _STRIDE)])
            records += _STRIDE
        self.flush()
        answer = {
            "records": float(records),
            "seconds": time.perf_counter() - begun,
            "cpu_s": time.process_time() - cpu,
        }
        self.close()
        return answer

    def trickle(self, job: Job) -> dict[str, Any]:
        """Send ``job["records"]`` one by one at ``job["rate"]``, without linger."""
        self.open(job, linger_ms=0)
        value = bytes(job["value_bytes"])
        self.send_many(value, range(1))
        self.flush()
        taken: Latencies = []
        due = time.perf_counter()
        for _ in range(job["records"]):
            self.send_timed(value, taken)
            due += 1 / job["rate"]
            self.wait(due)
        self.flush()
        self.close()
        if len(taken) != job["records"]:
            raise SystemExit(f"{job['records'] - len(taken)} records were not acknowledged")
        return {"latencies_ms": taken}

    @abstractmethod
    def open(self, job: Job, linger_ms: int) -> None: ...

    @abstractmethod
    def send_many(self, value: bytes, partitions: Any) -> None:
        """One record to each of these partitions, in turn."""

    @abstractmethod
    def send_timed(self, value: bytes, taken: Latencies) -> None:
        """One record to partition 0, whose latency is added to ``taken``."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until all is acknowledged. Ends the process if something failed."""

    @abstractmethod
    def close(self) -> None: ...

    def wait(self, until_s: float) -> None:
        """Wait until this time, and let acknowledgements be noticed."""
        if (left := until_s - time.perf_counter()) > 0:
            time.sleep(left)


def timer(taken: Latencies) -> Callable[..., None]:
    """A callback that notes the time since now."""
    begun = time.perf_counter()
    return lambda *_: taken.append((time.perf_counter() - begun) * 1000)


def java_config(job: Job, linger_ms: int) -> dict[str, Any]:
    """The job in Kafka's keys, as ours and librdkafka take them."""
    return {
        "bootstrap.servers": job["bootstrap"],
        "enable.idempotence": job.get("idempotence", True),
        "acks": "all",
        "linger.ms": linger_ms,
        "batch.size": job["batch_bytes"],
        "max.in.flight.requests.per.connection": job.get("in_flight", 5),
        "compression.type": "none",
    }


class Native(PeerClient):
    """Ours. With ``commit_ms`` in transactions, each of which is committed after this time."""

    def open(self, job: Job, linger_ms: int) -> None:
        from cluster.client import Producer

        self._topic = job["topic"]
        self._commit_s = job.get("commit_ms", 0) / 1000
        ids = {"transactional.id": self._topic} if self._commit_s else {}
        self._producer = Producer({**java_config(job, linger_ms), **ids})
        if self._commit_s:
            self._producer.init_transactions()
            self._begin()

    def _begin(self) -> None:
        self._producer.begin_transaction()
        self._due_s = time.perf_counter() + self._commit_s

    def send_many(self, value: bytes, partitions: Any) -> None:
        send, topic = self._producer.send, self._topic
        for partition in partitions:
            self._last = send(topic, value, None, partition)
        if self._commit_s and time.perf_counter() >= self._due_s:
            self._producer.commit_transaction()
            self._begin()

    def send_timed(self, value: bytes, taken: Latencies) -> None:
        self._last = self._producer.send(self._topic, value, None, 0, on_delivery=timer(taken))

    def flush(self) -> None:
        if self._commit_s:
            self._producer.commit_transaction()
            self._begin()
        self._producer.flush(60)
        self._last.result(0)
        if failed := self._producer.metrics()["record-error-total"]:
            raise SystemExit(f"{failed:g} records failed")

    def close(self) -> None:
        self._producer.close(10)


class Confluent(PeerClient):
    """confluent-kafka (librdkafka)."""

    def open(self, job: Job, linger_ms: int) -> None:
        from confluent_kafka import Producer

        self._topic = job["topic"]
        settings = {"batch.num.messages": 100_000, "queue.buffering.max.messages": _QUEUE, "log_level": 2}
        self._producer = Producer({**java_config(job, linger_ms), **settings})

    def send_many(self, value: bytes, partitions: Any) -> None:
        produce, topic = self._producer.produce, self._topic
        for partition in partitions:
            while True:
                try:
                    produce(topic, value, partition=partition)
                    break
                except BufferError:
                    self._producer.poll(0.05)

    def send_timed(self, value: bytes, taken: Latencies) -> None:
        self._producer.produce(self._topic, value, partition=0, on_delivery=timer(taken))

    def flush(self) -> None:
        if left := self._producer.flush(60):
            raise SystemExit(f"{left} records were not acknowledged")

    def wait(self, until_s: float) -> None:
        while (left := until_s - time.perf_counter()) > 0:
            self._producer.poll(left)

    def close(self) -> None:
        del self._producer


class KafkaPython(PeerClient):
    """kafka-python."""

    def open(self, job: Job, linger_ms: int) -> None:
        from kafka import KafkaProducer

        self._topic = job["topic"]
        self._producer = KafkaProducer(
            bootstrap_servers=job["bootstrap"],
            enable_idempotence=job.get("idempotence", True),
            acks="all",
            linger_ms=linger_ms,
            batch_size=job["batch_bytes"],
            max_in_flight_requests_per_connection=job.get("in_flight", 5),
        )

    def send_many(self, value: bytes, partitions: Any) -> None:
        send, topic = self._producer.send, self._topic
        for partition in partitions:
            self._last = send(topic, value, partition=partition)

    def send_timed(self, value: bytes, taken: Latencies) -> None:
        self._last = self._producer.send(self._topic, value, partition=0).add_callback(timer(taken))

    def flush(self) -> None:
        self._producer.flush(60)
        self._last.get(0.1)

    def close(self) -> None:
        self._producer.close(10)


class Aiokafka(PeerClient):
    """aiokafka, whose calls are awaited one by one; the loop runs while there is something to await."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def open(self, job: Job, linger_ms: int) -> None:
        from aiokafka import AIOKafkaProducer

        self._topic = job["topic"]

        async def start() -> None:
            self._producer = AIOKafkaProducer(
                bootstrap_servers=job["bootstrap"],
                enable_idempotence=job.get("idempotence", True),
                acks="all",
                linger_ms=linger_ms,
                max_batch_size=job["batch_bytes"],
            )
            await self._producer.start()

        self._loop.run_until_complete(start())

    def send_many(self, value: bytes, partitions: Any) -> None:
        async def send() -> None:
            for partition in partitions:
                self._last = await self._producer.send(self._topic, value, partition=partition)

        self._loop.run_until_complete(send())

    def send_timed(self, value: bytes, taken: Latencies) -> None:
        async def send() -> None:
            note = timer(taken)
            self._last = await self._producer.send(self._topic, value, partition=0)
            self._last.add_done_callback(note)

        self._loop.run_until_complete(send())

    def flush(self) -> None:
        async def flush() -> None:
            await self._producer.flush()
            await self._last

        self._loop.run_until_complete(flush())

    def wait(self, until_s: float) -> None:
        if (left := until_s - time.perf_counter()) > 0:
            self._loop.run_until_complete(asyncio.sleep(left))

    def close(self) -> None:
        self._loop.run_until_complete(self._producer.stop())


PEERS: dict[str, type[PeerClient]] = {
    "native": Native,
    "confluent-kafka": Confluent,
    "aiokafka": Aiokafka,
    "kafka-python": KafkaPython,
}


def main() -> int:
    peer = PEERS[sys.argv[1]]()
    for line in sys.stdin:
        job = json.loads(line)
        answer = peer.flood(job) if job["kind"] == "flood" else peer.trickle(job)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
