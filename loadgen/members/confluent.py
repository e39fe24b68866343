"""A member of a group with confluent-kafka (librdkafka). Owns the adapter; its calls need a thread.

librdkafka does not tell where it resumes: the first record of a partition does. A consumer that is released leaves its
group, so one that is to have crashed is no longer polled and kept: librdkafka leaves for it after
``max.poll.interval.ms``, as long as a session.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cluster.seams.clock import Clock
from loadgen.clients.base import Watermarks
from loadgen.clients.confluent import describe, describe_exception, is_fatal
from loadgen.clients.librdkafka_attempts import AttemptListener, KeptLines
from loadgen.members.events import POLL_RECORDS, Assigned, Committed, Delivered, Failed, MemberEvent, Revoked
from loadgen.members.member_offsets import Standing
from loadgen.settings import ConfigValue
from loadgen.spans import ReadRecord

DEFAULTS: dict[str, ConfigValue] = {
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    "max.poll.interval.ms": 6000,
}
#: The beginning of librdkafka's serialized group metadata; the generation follows.
_METADATA = b"CGMDv2:"


class ConfluentMember:
    """``MemberClient`` on a confluent-kafka consumer."""

    is_cooperative = False

    def __init__(self, topic: str, config: Mapping[str, Any], clock: Clock, *, commits: bool = True) -> None:
        """``commits``: the member commits itself; if not, transactions do. Raises ``KafkaException`` for a bad key."""
        self._commits = commits
        self._lines = KeptLines(AttemptListener(_ignore, is_debugged="debug" in config))
        self._topic = topic
        self._clock = clock
        self._standing = Standing()
        self._events: list[MemberEvent] = []
        self._records: list[ReadRecord] = []
        self._begin_ns = -1
        self._is_abandoned = False
        self.consumer = Consumer({**config, "error_cb": self._on_error}, logger=self._lines)
        self.consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def __repr__(self) -> str:
        return f"ConfluentMember({self._standing})"

    def poll(self, timeout_s: float) -> list[MemberEvent]:
        self._begin_ns = self._clock.monotonic_ns()
        wait_s = timeout_s
        try:
            # one record at a time, so that callbacks between two records become events between them
            while len(self._records) < POLL_RECORDS and (message := self.consumer.poll(wait_s)) is not None:
                wait_s = 0.0
                if (error := message.error()) is not None:
                    self._events.append(Failed(describe(error), error.fatal()))
                    break
                self._take(message)
        except KafkaException as raised:
            self._events.append(Failed(describe_exception(raised), is_fatal(raised)))
        self._deliver()
        return self._taken()

    def pass_on(self) -> None:
        self._lines.pass_on()

    def commit(self) -> list[MemberEvent]:
        self._commit(self._standing.uncommitted())
        return self._taken()

    def close(self) -> list[MemberEvent]:
        try:
            self._commit(self._standing.uncommitted())
            self.consumer.close()
        except (KafkaException, RuntimeError) as error:
            self._events.append(Failed(describe_exception(error)))
        return self._taken()

    def abandon(self) -> list[MemberEvent]:
        """Crash, for the group: stop polling. ``release`` ends the consumer later."""
        self._is_abandoned = True
        given = self._standing.give_away(list(self._standing.assigned))
        if given:
            self._events.append(Revoked(given, True, self._clock.monotonic_ns()))
        return self._taken()

    def release(self) -> None:
        """Close a consumer that was abandoned. Blocks; one whose session is over does not leave a second time.

        What waits for it from rebalances of that time is taken before, while librdkafka still answers. While it ends,
        it may drop the request to assign that follows a rebalance, and the thread that made it waits forever, with
        Python's lock (docs/reference/anomalies-and-bugs.md "Bugs of others").
        """
        # a consumer that was fenced meanwhile refuses, but does not join a group again anyway
        with suppress(KafkaException):
            self.consumer.unsubscribe()
        with suppress(KafkaException):
            while self.consumer.poll(0) is not None:
                pass
        self.consumer.close()

    def _take(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        self._standing.delivered(partition, offset)
        self._records.append(ReadRecord(partition, offset, message.value()))

    def _deliver(self) -> None:
        """Make an event of the records that were taken so far."""
        if not self._records:
            return
        records, self._records = self._records, []
        seen = {
            partition: self._watermarks(partition)
            for partition in dict.fromkeys(record.partition for record in records)
        }
        self._events.append(Delivered(records, seen, self._begin_ns, self._clock.monotonic_ns()))

    def _watermarks(self, partition: int) -> Watermarks:
        try:
            cached = self.consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        except (KafkaException, RuntimeError):
            return Watermarks()
        return Watermarks() if cached is None or cached[1] < 0 else Watermarks(cached[1])

    def _commit(self, offsets: Mapping[int, int]) -> None:
        if not offsets or not self._commits:
            return
        begin_ns, before = self._clock.monotonic_ns(), self._generation()
        error: str | None = None
        try:
            asked = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
            for each in self.consumer.commit(offsets=asked, asynchronous=False):
                if each.error is not None:
                    error = describe(each.error)
        except KafkaException as raised:
            error = describe_exception(raised)
        end_ns, after = self._clock.monotonic_ns(), self._generation()
        generation = before if before == after else -1
        # never "fail": an attempt before the refused one may have succeeded
        self._events.append(Committed(offsets, "ok" if error is None else "info", error, generation, begin_ns, end_ns))
        if error is None:
            self._standing.committed(offsets)

    def _generation(self) -> int:
        return generation_of(self.consumer.consumer_group_metadata())

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._is_abandoned:
            return
        self._deliver()
        numbers = [each.partition for each in partitions]
        if numbers:
            self._standing.take(numbers)
            who = self.consumer.memberid() or ""
            self._events.append(Assigned(numbers, who, self._generation(), self._clock.monotonic_ns()))

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_away(partitions, is_lost=False)

    def _on_lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_away(partitions, is_lost=True)

    def _give_away(self, partitions: list[TopicPartition], *, is_lost: bool) -> None:
        if self._is_abandoned:
            return
        self._deliver()
        numbers = [each.partition for each in partitions]
        if not is_lost:
            self._commit(self._standing.uncommitted(numbers))
        self._events.append(Revoked(self._standing.give_away(numbers), is_lost, self._clock.monotonic_ns()))

    def _on_error(self, error: KafkaError) -> None:
        if not self._is_abandoned:
            self._events.append(Failed(describe(error), error.fatal()))

    def _taken(self) -> list[MemberEvent]:
        events, self._events = self._events, []
        return events


def _ignore(*_attempt: object) -> None:
    """Ignore attempts to send, which a consumer does not have."""


def generation_of(metadata: bytes) -> int:
    """The generation in librdkafka's serialized group metadata; -1 if there is none yet, or for another format."""
    if not metadata.startswith(_METADATA) or len(metadata) < len(_METADATA) + 4:
        return -1
    (generation,) = struct.unpack_from("<i", metadata, len(_METADATA))
    return int(generation)
