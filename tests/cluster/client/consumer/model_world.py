"""A consumer's core against leaders that move, fail, answer late or not at all: one schedule from one seed.

The rule: whatever the order of answers, errors, seeks and pauses, the records of a partition come in order, without
hole or repeat, from the position; after an error the position is where it was; and in the end everything is read. Where
the topic is deleted and created again, reading starts over in it, by auto.offset.reset.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from uuid import UUID

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.client.consumer.assignment import AssignedPartition
from cluster.client.consumer.fetch_plans import READ_COMMITTED, READ_UNCOMMITTED, Fetch, FetchSettings
from cluster.client.consumer.fetching import FetchCore
from cluster.client.consumer.lookup import Sought
from cluster.client.consumer.results import ConsumerError, CorruptRecord
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset
from cluster.protocol.batch import CRC_FROM, parse_header
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResponse, FetchResult
from cluster.topic_partition import TopicPartition
from tests.cluster.client.consumer.model_log import PRODUCERS, ModelLog

TOPIC = "t"
NODES = (1, 2, 3)
#: Leads what has no leader; also the id of a bootstrap address.
NOBODY = -1
TRANSIENT = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class Violation(AssertionError):
    """What must not happen has happened."""


@dataclass
class Asked:
    """A question in flight; ``answer`` once the broker has worked on it."""

    node_id: int
    question: Fetch | dict[TopicPartition, Sought]
    topic_id: UUID | None
    answer: object = None


class World:
    """``core_class`` may have a bug planted."""

    def __init__(self, seed: int, core_class: type[FetchCore] = FetchCore) -> None:
        self.random = Random(seed)
        self.committed = self.random.random() < 0.5
        self.policy = self.random.choice((EARLIEST_TIMESTAMP, LATEST_TIMESTAMP))
        isolation = READ_COMMITTED if self.committed else READ_UNCOMMITTED
        settings = FetchSettings(1, 1000, 100, 300, isolation, True, self.policy)
        self.core = core_class(settings, ExponentialBackoff(10, 100, self.random))
        self.keys = [(TOPIC, index) for index in range(self.random.randint(1, 3))]
        self.logs = {key: ModelLog() for key in self.keys}
        self.life = 1
        # What was there before the topic was created again: the log, and where its reader may be.
        self.past: dict[tuple[TopicPartition, int], tuple[ModelLog, set[int]]] = {}
        # Of the topic that the core was told of last.
        self.planned_id: UUID | None = None
        self.last_life = dict.fromkeys(self.keys, 1)
        self.leaders = dict.fromkeys(self.keys, 1)
        self.view = self.actual()
        self.now_ms = 0
        self.flight: list[Asked] = []
        # Where each partition may be; several offsets while it is looked for.
        self.places: dict[TopicPartition, set[int]] = {}
        # The timestamps that are looked for meanwhile, or may be.
        self.sought: dict[TopicPartition, set[int]] = {}
        self.core.assign(self.keys)
        for key in self.keys:
            self.seeks_to(key, self.policy)

    def actual(self) -> ClusterView:
        partitions = {
            number: PartitionView(number, ErrorCode.NONE, self.leaders[TOPIC, number], log.epoch, NODES, NODES, ())
            for (_, number), log in self.logs.items()
        }
        brokers = {node: BrokerAddress(node, "h", node) for node in NODES}
        if self.random.random() < 0.1:
            # Nobody that was known could be reached: the bootstrap addresses are asked too.
            brokers |= {-1 - node: BrokerAddress(-1 - node, "h", node) for node in NODES}
        topic = TopicView(TOPIC, UUID(int=self.life), ErrorCode.NONE, False, partitions)
        return ClusterView("c", 1, brokers, {TOPIC: topic})

    def run(self, steps: int = 150) -> None:
        acts = (self.append, self.append, self.finish, self.move, self.delete, self.recreate, self.refresh, self.send,
                self.send,
                self.serve, self.deliver, self.deliver, self.lose, self.take, self.take, self.seek, self.pause,
                self.wait)  # fmt: skip
        for _ in range(steps):
            self.random.choice(acts)()
            self.note()
        self.drain()

    # What the cluster does

    def append(self) -> None:
        self.logs[self.random.choice(self.keys)].append(self.random)

    def finish(self) -> None:
        self.logs[self.random.choice(self.keys)].finish(
            self.random.choice(PRODUCERS), self.random.choice(("committed", "aborted"))
        )

    def move(self) -> None:
        if self.random.random() < 0.3:
            key = self.random.choice(self.keys)
            self.leaders[key] = self.random.choice((*NODES, NOBODY))
            self.logs[key].epoch += 1

    def delete(self) -> None:
        if self.random.random() < 0.2:
            log = self.logs[self.random.choice(self.keys)]
            log.start = self.random.randint(log.start, log.stable)

    def recreate(self) -> None:
        if self.planned_id is not None and self.random.random() < 0.1:
            for key, log in self.logs.items():
                self.past[key, self.life] = log, self.places[key]
                self.places[key] = set()
                self.sought.setdefault(key, set()).add(self.policy)
                self.leaders[key] = self.random.choice(NODES)
            self.life += 1
            self.logs = {key: ModelLog(self.life) for key in self.keys}

    def serve(self) -> None:
        """A broker works on a question; the answer is on its way."""
        if self.flight:
            asked = self.random.choice(self.flight)
            if asked.answer is None:
                asked.answer = self.answer(asked)

    def answer(self, asked: Asked, chaos: float = 0.1) -> object:
        if isinstance(asked.question, Fetch):
            results = [self.result(asked, asked.question, key, chaos) for key in asked.question.places]
            return FetchResponse(0, 0, 0, 0, results)
        return {key: self.listed(asked, key, sought.timestamp, chaos) for key, sought in asked.question.items()}

    def listed(self, asked: Asked, key: TopicPartition, time: int, chaos: float) -> ListedOffset | ErrorCode:
        log = self.logs[key]
        if self.random.random() < chaos:
            return self.random.choice(TRANSIENT)
        if self.leaders[key] != asked.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if asked.topic_id != UUID(int=self.life):
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        end = log.stable if self.committed else log.end
        return ListedOffset(log.start if time == EARLIEST_TIMESTAMP else end, -1, log.epoch)

    def result(self, asked: Asked, fetch: Fetch, key: TopicPartition, chaos: float) -> FetchResult:
        log, place = self.logs[key], fetch.places[key]
        code, data, aborted = ErrorCode.NONE, b"", []
        if self.random.random() < chaos:
            code = self.random.choice(TRANSIENT)
        elif self.leaders[key] != asked.node_id:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif asked.topic_id != UUID(int=self.life) and self.random.random() < 0.7:
            # Its epochs started over: a request that cannot be told from one for this topic is not in this model.
            code = ErrorCode.UNKNOWN_LEADER_EPOCH
        elif asked.topic_id != UUID(int=self.life):
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif place.leader_epoch < log.epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
        elif not log.start <= place.position <= log.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            data, aborted = log.read(place.position, self.random.choice((1, 100, 300)), committed=self.committed)
            if data and self.random.random() < chaos:
                # Only there does the checksum see it.
                damaged = bytearray(data)
                damaged[self.random.randrange(CRC_FROM, parse_header(data).size_bytes)] ^= 0x55
                data = bytes(damaged)
            elif data and self.random.random() < chaos:
                # A broker that sends half of a batch.
                data = data[: self.random.randrange(1, parse_header(data).size_bytes)]
        return FetchResult(*key, code, log.end, log.stable, log.start, data, aborted=aborted)

    # What the client does

    def refresh(self) -> None:
        self.view = self.actual()

    def wait(self) -> None:
        self.now_ms += self.random.choice((1, 20, 200))

    def send(self) -> None:
        plan = self.core.plan(self.view, self.now_ms)
        if not set(NODES).issuperset([*plan.lookups, *plan.fetches]):
            raise Violation(f"asks nodes that lead nothing: {plan}")
        topic_id = self.planned_id = self.view.topic_id(TOPIC)
        for node_id, wanted in plan.lookups.items():
            self.core.resets.asked(wanted)
            self.flight.append(Asked(node_id, wanted, topic_id))
        for node_id, partitions in plan.fetches.items():
            self.flight.append(Asked(node_id, self.core.fetch(node_id, partitions, self.view), topic_id))

    def deliver(self) -> None:
        if self.flight:
            asked = self.flight.pop(self.random.randrange(len(self.flight)))
            self.hand_over(asked, asked.answer or self.answer(asked))

    def hand_over(self, asked: Asked, answer: object) -> None:
        if isinstance(asked.question, Fetch):
            self.core.fetched(asked.question, answer, self.now_ms)  # type: ignore[arg-type]
        else:
            self.core.listed(asked.question, answer, self.now_ms)  # type: ignore[arg-type]

    def lose(self) -> None:
        if self.flight and self.random.random() < 0.3:
            asked = self.flight.pop(self.random.randrange(len(self.flight)))
            if isinstance(asked.question, Fetch):
                self.core.fetch_failed(asked.question)
            else:
                self.core.resets.failed(asked.question, self.now_ms)

    def seek(self) -> None:
        if self.random.random() < 0.3:
            key = self.random.choice(self.keys)
            if self.random.random() < 0.5:
                time = self.random.choice((EARLIEST_TIMESTAMP, LATEST_TIMESTAMP))
                self.core.seek_to([key], time)
                self.seeks_to(key, time)
            else:
                offset = self.random.randint(0, self.logs[key].end + 1)
                self.core.seek(key, offset)
                self.places[key] = {offset}
                # What metadata tell of was the topic before.
                self.sought[key] = set() if self.planned_id in (None, UUID(int=self.life)) else {self.policy}

    def seeks_to(self, key: TopicPartition, time: int) -> None:
        self.places[key] = set()
        self.sought[key] = {time} if self.planned_id in (None, UUID(int=self.life)) else {time, self.policy}

    def pause(self) -> None:
        partition = self.core.assignment.find(self.random.choice(self.keys))
        partition.is_paused = self.random.random() < 0.4

    def take(self, limit: int | None = None) -> int:
        before = {key: self.core.assignment.find(key).position for key in self.keys}
        try:
            records = self.core.take(limit or self.random.randint(1, 6))
        except ConsumerError as error:
            if not isinstance(error, CorruptRecord):
                raise Violation(f"unforeseen: {error!r}") from error
            for key, place in before.items():
                partition = self.core.assignment.find(key)
                after = partition.position
                if partition.topic_id != UUID(int=self.life):
                    continue
                if place != after and (
                    place is None
                    or after is None
                    or self.next_visible(self.logs[key], place) != self.next_visible(self.logs[key], after)
                ):
                    raise Violation(f"{key} moved from {place} to {after} with an error") from error
            return 0
        for record in records:
            key = record.topic, record.partition
            if self.core.assignment.find(key).is_paused:
                raise Violation(f"{key} is paused")
            life, offset = map(int, (record.value or b"").split(b"."))
            if record.offset != offset:
                raise Violation(f"{record} has another's value")
            if life < self.last_life[key]:
                raise Violation(f"{record} is of a topic that was left")
            self.last_life[key] = life
            is_now = life == self.life
            log, places = (self.logs[key], self.places[key]) if is_now else self.past[key, life]
            expected = {self.next_visible(log, place) for place in places}
            if offset not in expected:
                raise Violation(f"{key} brings {offset} of {life} where one of {sorted(map(str, expected))} is due")
            places.clear()
            places.add(offset + 1)
            if is_now:
                self.sought.pop(key, None)
        return len(records)

    # What must hold

    def next_visible(self, log: ModelLog, place: int) -> int | None:
        return next((offset for offset in log.visible(committed=self.committed) if offset >= place), None)

    def note(self) -> None:
        """Where a partition may be from now on: looked for, or reset since its log does not hold its place."""
        for key, log in self.logs.items():
            ends = {EARLIEST_TIMESTAMP: log.start, LATEST_TIMESTAMP: log.stable if self.committed else log.end}
            times = self.sought.get(key)
            self.places[key].update(ends[time] for time in times or ())
            if any(not log.start <= place <= log.end for place in self.places[key]):
                self.places[key].add(ends[self.policy])
                if self.policy == LATEST_TIMESTAMP or times:
                    # It may be looked for at any time from now on.
                    self.sought.setdefault(key, set()).add(self.policy)

    def is_at_the_end(self, partition: AssignedPartition) -> bool:
        """Of the topic that is: in the one before, the position may be the same by chance."""
        return partition.topic_id == UUID(int=self.life) and partition.position == self.logs[partition.key].end

    def drain(self) -> None:
        """Nothing fails any more: all that is visible behind the positions is read."""
        for key, log in self.logs.items():
            for producer_id in PRODUCERS:
                log.finish(producer_id, "committed")
            self.core.assignment.find(key).is_paused = False
            if self.leaders[key] == NOBODY:
                self.leaders[key] = self.random.choice(NODES)
        for _ in range(400):
            self.refresh()
            self.note()
            self.now_ms += 200
            self.send()
            while self.flight:
                asked = self.flight.pop(0)
                self.hand_over(asked, asked.answer or self.answer(asked, chaos=0))
            while self.take(1000):
                pass
            if all(self.is_at_the_end(self.core.assignment.find(key)) for key in self.keys):
                break
        else:
            raise Violation(f"not everything is read: {self.core!r}")
        for key in self.keys:
            if (
                all(self.next_visible(self.logs[key], place) is not None for place in self.places[key])
                and self.places[key]
            ):
                raise Violation(f"{key} was not read to its end: {self.places[key]}")
