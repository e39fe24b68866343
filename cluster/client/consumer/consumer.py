"""Consumer: reads partitions that a program assigns to it, or that its group does, in the program's own thread.

Owns the face towards programs (Kafka's ``KafkaConsumer``). Does not own I/O (``fetch_reader``), what to read
(``fetching``), waiting (``consumer_calls``) nor rebalances (``group``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.client.argument_checks import checked_keys, checked_long, checked_topics
from cluster.client.committed_offset import OffsetAndMetadata, checked_offsets
from cluster.client.consumer.consumer_calls import ConsumerCalls
from cluster.client.consumer.group.commits import OnCommit
from cluster.client.consumer.group.group_side import GroupSide
from cluster.client.consumer.group.offset_calls import OffsetCall
from cluster.client.consumer.group.rebalance_listener import RebalanceListener
from cluster.client.consumer.results import ConsumerRecord
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cluster.seams.units import ms_of_seconds
from cluster.topic_partition import TopicPartition, partition_name

#: How long ``close`` takes at most unless told: Kafka's.
_CLOSE_TIMEOUT_S = 30.0


class Consumer(ConsumerCalls):
    """``config`` has Kafka's own keys. For one thread at a time: another that calls meanwhile gets ``RuntimeError``.

    Calls that wait take ``timeout_s`` (None: ``default.api.timeout.ms``) and raise ``TimeoutError`` after it. Raises
    ``ConfigError``. Close it after use; it is a context manager.
    """

    def __repr__(self) -> str:
        return f"Consumer({'closed' if self._is_closed else self._core})"

    def close(self, timeout_s: float = _CLOSE_TIMEOUT_S, *, remains_in_group: bool = False) -> None:
        """Commit what was consumed (``enable.auto.commit``), leave the group, and close the connections.

        A static member does not leave, nor does any with ``remains_in_group`` (KIP-1092): the group has it until its
        session is over. A second call does nothing.
        """
        if self._is_closed:
            return
        with self._used():
            try:
                if self._group is not None:
                    self._leave(self._group, timeout_s, remains_in_group=remains_in_group)
            finally:
                self._is_closed = True
                self._reader.close()

    def _leave(self, group: GroupSide, timeout_s: float, *, remains_in_group: bool) -> None:
        deadline_ms = self._clock.monotonic_ms() + ms_of_seconds(timeout_s)
        self._core.assignment.settle()
        try:
            # Where the program keeps the coordinator's connection from its turn, what was begun is finished after this.
            while not group.commits.is_settled(ms_of_seconds(timeout_s)) and not group.io.is_carried_on_here:
                self._reader.turn(max(0.0, deadline_ms - self._clock.monotonic_ms()))
            if group.is_subscribed:
                reason = "the consumer is being closed"
                group.participation.unsubscribe(reason, remains_in_group=remains_in_group)
        finally:
            group.io.close(max(0.0, deadline_ms - self._clock.monotonic_ms()))
            group.commits.tell_ended()

    # What is read

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these ``(topic, partition)``. Those assigned before continue where they are; new ones begin
        where the group has committed, if there is a ``group.id``, or else where ``auto.offset.reset`` says, unless the
        program seeks.
        """
        with self._used():
            wanted = checked_keys(partitions)
            if any(topic == "" for topic, _partition in wanted):
                raise ValueError("Topic partitions to assign to cannot have null or empty topic")
            if self._group is not None and self._group.is_subscribed:
                raise RuntimeError("Subscription to topics and partitions are mutually exclusive: unsubscribe first")
            self._use(topic for topic, _ in wanted)
            self._core.assign(wanted, from_committed=self._group is not None)
            self._use_no_others()

    def assignment(self) -> list[TopicPartition]:
        """What is read."""
        return self._core.assignment.assigned

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> None:
        """Be a member of the group of ``group.id`` that reads these topics, instead of others. Partitions come with
        ``poll``, which calls the listener. No topics: as ``unsubscribe``.
        """
        wanted = checked_topics(topics)
        if "" in wanted:
            raise ValueError("Topic collection to subscribe to cannot contain null or empty topic")
        group = self._needed_group("subscribe")
        if not wanted:
            self.unsubscribe()
            return
        with self._used():
            if self._core.assignment.assigned and not group.is_subscribed:
                raise RuntimeError("Subscription to topics and partitions are mutually exclusive: assign([]) first")
            self._use(wanted)
            group.participation.subscribe(wanted, listener)
            self._use_no_others()

    def subscription(self) -> list[str]:
        """The topics that were subscribed to."""
        return [] if self._group is None else list(self._group.participation.topics)

    def unsubscribe(self) -> None:
        """Read nothing, and leave the group; the listener is called. Nothing is committed."""
        with self._used():
            try:
                if self._group is not None and self._group.is_subscribed:
                    self._group.participation.unsubscribe("the consumer unsubscribed from all topics")
            finally:
                self._core.assign([])
                self._use_no_others()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until ``resume``. What was fetched already is kept."""
        self._set_paused(partitions, is_paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._set_paused(partitions, is_paused=False)

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused."""
        return [partition.key for partition in self._core.assignment if partition.is_paused]

    def poll(self, timeout_s: float = 0.0) -> list[ConsumerRecord]:
        """The next records, at most ``max.poll.records``; those of one partition are in order, without hole or repeat.

        Waits for the first ones, for ``timeout_s`` at most; empty then. A rebalance happens in here, too. Raises
        ``ConsumerError``; no position has moved then, nor after any other exception that comes meanwhile
        (``KeyboardInterrupt``), and the next poll continues.
        """
        if timeout_s < 0:
            raise ValueError("a timeout is not negative")
        with self._used():
            group = self._group
            if not self._core.assignment.assigned and (group is None or not group.is_subscribed):
                raise RuntimeError(
                    "Consumer is not subscribed to any topics or assigned any partitions: "
                    "call subscribe or assign first"
                )
            self._core.assignment.settle()
            left_ms = ms_of_seconds(timeout_s)
            deadline_ms = self._clock.monotonic_ms() + left_ms
            records = self._take(group)
            while not records:
                wait_ms = left_ms if group is None else min(left_ms, group.longest_wait_ms())
                self._reader.turn(max(0.0, wait_ms))
                records = self._take(group)
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    break
            # What comes next is fetched while the program works on these.
            self._reader.send()
            self._consumed += len(records)
        self._core.assignment.is_handed_over = True
        return records

    def _take(self, group: GroupSide | None) -> list[ConsumerRecord]:
        self._raise_if_woken()
        if group is not None and not group.step():
            return []
        return self._core.take(self._config["max.poll.records"])

    # Positions

    def position(self, partition: TopicPartition, timeout_s: float | None = None) -> int:
        """The offset of the next record that ``poll`` will return; waits until it is known."""
        with self._used():
            self._core.assignment.settle()
            what = f"the position of {partition_name(partition)}"

            def found() -> int | None:
                if self._group is not None:
                    self._group.look_up()
                return self._core.position(partition)

            return self._until(found, timeout_s, what)

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Continue at an offset. ``leader_epoch`` of the record before it, if known, reveals a truncated log."""
        if checked_long(offset, "an offset") < 0:
            raise ValueError("seek offset must not be a negative number")
        with self._used():
            self._core.seek(partition, offset, leader_epoch)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue at the first record (None: of all partitions). Where that is is asked when it is needed."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue after the last record: the last stable one with isolation.level=read_committed."""
        self._seek_to(partitions, LATEST_TIMESTAMP)

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end, as of the last fetch; None if one of both is not known."""
        return self._core.lag(partition)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """High watermark and last stable offset, as of the last fetch; -1 each if not known. Kafka has no such call."""
        return self._core.watermarks(partition)

    # The group's offsets

    def commit_sync(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Commit these offsets (None: what ``poll`` has returned), and wait until they are stored.

        Raises ``CommitFailed`` for a member that the group has excluded, ``RebalanceInProgress``, ``GroupError``.
        """
        with self._used():
            group = self._needed_group("commit")
            wanted = self._offsets_to_commit(group, offsets)
            if wanted:
                self._wait(group, group.commits.begin(wanted), timeout_s, "a commit of offsets")
            group.commits.tell_ended()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """The same without waiting, and not tried again. ``on_commit(offsets, error)`` is called by a later call of the
        program's; ``RetriableCommitFailed`` is an error whose cause passes. Commits are carried out in their order.
        """
        with self._used():
            group = self._needed_group("commit")
            wanted = self._offsets_to_commit(group, offsets)
            group.commits.tell_ended()
            group.commits.send(wanted, on_commit)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed of each; None for nothing. Waits for the outcome of transactions (KIP-447)."""
        with self._used():
            group = self._needed_group("ask for committed offsets")
            call = group.commits.begin_fetch(checked_keys(partitions))
            self._wait(group, call, timeout_s, "committed offsets")
            return call.found

    def group_metadata(self) -> ConsumerGroupMetadata:
        """What ``send_offsets_to_transaction`` of a producer needs, so that it is fenced as the consumer is."""
        return self._needed_group("be a member").metadata()

    def _needed_group(self, doing: str) -> GroupSide:
        if self._group is None:
            raise RuntimeError(f"To {doing}, the consumer needs a group: set 'group.id' in its configuration")
        return self._group

    def _offsets_to_commit(self, group: GroupSide, offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
        self._core.assignment.settle()
        return group.commits.consumed() if offsets is None else checked_offsets(offsets)

    def _wait(self, group: GroupSide, call: OffsetCall, timeout_s: float | None, what: str) -> None:
        try:
            self._until(lambda: group.commits.is_done(call) or None, timeout_s, what)
        finally:
            group.commits.end(call)

    def metrics(self) -> dict[str, float]:
        """Kafka's names: records returned, bytes of record batches that came, fetches answered, the greatest lag."""
        lags = [self._core.lag(key) for key in self._core.assignment.assigned]
        return {
            "records-consumed-total": self._consumed,
            "bytes-consumed-total": self._reader.fetched_bytes,
            "fetch-total": self._reader.fetch_count,
            "records-lag-max": max((lag for lag in lags if lag is not None), default=0),
            "assigned-partitions": len(lags),
        }

    def _seek_to(self, partitions: Iterable[TopicPartition] | None, timestamp: int) -> None:
        with self._used():
            self._core.seek_to(self._core.assignment.assigned if partitions is None else partitions, timestamp)

    def _set_paused(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        with self._used():
            for partition in [self._core.assignment.find(key) for key in partitions]:
                partition.is_paused = is_paused
