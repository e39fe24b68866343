"""A steady load whose acknowledgements are timed: one idempotent acks=all producer to each partition.

Owns the producers' threads and when each partition was acknowledged. One producer to a partition, as in a run: an
error on one partition must not hold up another (librdkafka's issue 4953). Times are monotonic seconds of this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer

VALUE = b"v" * 100


class PartitionLoad:
    """One producer to one partition, at a fixed rate."""

    def __init__(self, topic: str, partition: int, config: Mapping[str, object], rate: float) -> None:
        self.partition = partition
        #: When each acknowledgement arrived, ascending.
        self.acknowledged_s: list[float] = []
        self.failures: list[str] = []
        self._topic = topic
        self._producer = Producer(dict(config))
        self._interval_s = 1 / rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load-{partition}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<PartitionLoad {self.partition}: {len(self.acknowledged_s)} acknowledged>"

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self._producer.produce(self._topic, VALUE, partition=self.partition, on_delivery=self._delivered)
            except BufferError:
                self.failures.append("the producer's queue is full")
            due += self._interval_s
            while (left := due - time.monotonic()) > 0:
                self._producer.poll(left)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.acknowledged_s.append(time.monotonic())
        else:
            self.failures.append(str(error))

    def ask_to_stop(self) -> None:
        self._stop.set()

    def close(self, timeout_s: float) -> None:
        """Wait for what is outstanding."""
        self._stop.set()
        self._thread.join(timeout_s)
        left = self._producer.flush(timeout_s)
        if left:
            self.failures.append(f"{left} records were not acknowledged in the end")

    def longest_gap_s(self, from_s: float) -> float | None:
        """The longest time between two acknowledgements of which the later came at ``from_s`` or after.

        None as long as nothing was acknowledged since.
        """
        times = self.acknowledged_s
        count = len(times)
        gaps = [times[at] - times[at - 1] for at in range(1, count) if times[at] >= from_s]
        return max(gaps, default=None)


class TopicLoad:
    """The load of all partitions of a topic."""

    def __init__(self, topic: str, partitions: int, config: Mapping[str, object], rate: float) -> None:
        self.partitions = [PartitionLoad(topic, number, config, rate / partitions) for number in range(partitions)]

    def __repr__(self) -> str:
        return f"<TopicLoad {self.partitions}>"

    @property
    def acknowledged(self) -> int:
        return sum(len(partition.acknowledged_s) for partition in self.partitions)

    @property
    def failures(self) -> list[str]:
        return [failure for partition in self.partitions for failure in partition.failures]

    def wait_acknowledged(self, since_s: float, timeout_s: float, each: int = 3) -> None:
        """Wait until every partition has ``each`` acknowledgements since a time. Raises ``TimeoutError``."""
        deadline = time.monotonic() + timeout_s
        for partition in self.partitions:
            while sum(when >= since_s for when in partition.acknowledged_s[-10:]) < each:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"partition {partition.partition} was not acknowledged within {timeout_s} s")
                time.sleep(0.02)  # coarser than waking for every acknowledgement, which would cost what is measured

    def close(self, timeout_s: float = 30.0) -> None:
        for partition in self.partitions:
            partition.ask_to_stop()
        for partition in self.partitions:
            partition.close(timeout_s)
