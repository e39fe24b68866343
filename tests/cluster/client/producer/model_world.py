"""A world for the producer's sender: one seed is one schedule of records, faults and answers on virtual time.

Owns the schedule, the carrying out of actions, and the judgment at the end. Does not own the brokers
(``model_broker.py``) nor any decision of the sender.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.actions import (
    Action,
    AskProducerId,
    CompleteBatch,
    Connect,
    FailBatch,
    PartitionResult,
    RefreshMetadata,
    SendProduce,
    WakeAt,
)
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.delivery import ProduceError, RecordMetadata
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.invariants import validate_sender
from cluster.client.producer.outcomes import recorded_outcome
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.sender_settings import SenderSettings
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.model_broker import (
    REFUSALS,
    UNDECIDED,
    Appended,
    Connection,
    ModelPartition,
    begin,
    finish,
    values_of,
)

HEAL_MS = 1_500
REQUEST_TIMEOUT_MS = 400
#: How long after the healing, or after it was appended, a record may take at most.
SETTLING_MS = 2_000
TURNS_IN_A_MILLISECOND = 200


class Sent(NamedTuple):
    """One batch on its way: a copy that arrives again meets the same refusal."""

    partition: int
    data: bytes
    refusal: ErrorCode | None


class Violation(AssertionError):
    """The sender broke a promise."""


class World:
    """One schedule. ``accumulator`` and ``identity`` are the classes under test, or ones with a planted bug."""

    def __init__(
        self,
        seed: int,
        accumulator: type[RecordAccumulator] = RecordAccumulator,
        identity: type[ProducerIdentity] = ProducerIdentity,
    ) -> None:
        self.random = draw = Random(seed)
        self.seed = seed
        self.now_ms = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.nodes = list(range(draw.randint(1, 3)))
        self.partitions = [ModelPartition(draw.choice(self.nodes)) for _ in range(draw.randint(1, 3))]
        self.batch_size = draw.choice([200, 500])
        self.max_bytes = draw.choice([10_000, 10_000, 300])
        self.capacity = self.free = self.batch_size * draw.randint(3, 30)
        self.delivery_timeout_ms = draw.choice([900, 2_500, 6_000])
        settings = SenderSettings(
            max_in_flight=draw.choice([1, 2, 5, 5]),
            max_request_size=draw.choice([600, 10_000]),
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=self.delivery_timeout_ms,
            retries=draw.choice([3, 2_147_483_647, 2_147_483_647]),
        )
        #: How likely each fault is in this schedule, until the healing.
        self.odds = {name: draw.choice([0, 0, 0.02, 0.1, 0.3]) for name in FAULTS}
        self.first_epoch = draw.choice([0, 0, 32_766])
        self.is_checked_across_ids = self.first_epoch == 0
        self.accumulator = accumulator(
            batch_size=self.batch_size,
            linger_ms=draw.choice([0, 0, 5, 20]),
            delivery_timeout_ms=self.delivery_timeout_ms,
            is_exhausted=lambda: bool(self.waiting),
        )
        self.identity = identity(settings.max_in_flight)
        self.accumulator_identity(self.accumulator)
        #: One in six writes without sequences: what is acknowledged is stored, once or more often.
        self.is_idempotent = draw.random() > 1 / 6
        #: Without sequences only one request in flight keeps the order.
        self.is_ordered = self.is_idempotent or settings.max_in_flight == 1
        used = self.identity if self.is_idempotent else None
        self.core = SenderCore(settings, self.accumulator, used, lambda failures: min(10 * 2**failures, 100))
        self.connections: dict[int, Connection] = {}
        self.waiting: list[tuple[int, int]] = []
        self.appended_ms: dict[tuple[int, int], int] = {}
        self.outcomes: dict[tuple[int, int], tuple[RecordMetadata, ProduceError | None]] = {}
        self.is_refreshing = False
        self.producer_ids = 0
        self.turns = (0, 0)
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        #: Whether what always holds is looked at after each event.
        self.is_inspected = True
        self.wakes: set[int] = set()
        # Records of which a request arrived twice: a refusal of one copy says nothing about the other, and no client
        # can know.
        self.copied: set[tuple[int, int]] = set()

    def accumulator_identity(self, accumulator: RecordAccumulator) -> None:
        """A planted accumulator may want to know the identity."""
        if hasattr(accumulator, "identity"):
            accumulator.identity = self.identity

    def run(self) -> None:
        """Play the schedule to its end, and judge."""
        draw = self.random
        numbers = [0] * len(self.partitions)
        for _ in range(draw.randint(20, 80)):
            at_ms = draw.choice([draw.randint(0, 1_200), draw.randint(0, 300), draw.randint(HEAL_MS, HEAL_MS + 500)])
            self.at(at_ms, lambda: self.produce(draw.randrange(len(numbers)), numbers))
        for partition in range(len(numbers)):
            self.at(HEAL_MS + SETTLING_MS, lambda partition=partition: self.produce(partition, numbers))
        for _ in range(draw.randint(0, 4) if self.odds["move"] else 0):
            self.at(draw.randint(0, HEAL_MS), self.move)
        self.at(0, self.refresh)
        self.play()
        self.judge(numbers)

    def play(self) -> None:
        """Everything that was to happen, and what follows from it, in time."""
        end_ms = HEAL_MS + 2 * SETTLING_MS + 4_000
        while self.events and self.events[0][0] <= end_ms:
            self.now_ms, _order, event = heapq.heappop(self.events)
            event()
            self.tick()
            if self.violations:
                # Found in a callback, from which nothing may be raised.
                raise Violation(self.violations[0])
            if self.free < 0:
                raise Violation(f"{-self.free} bytes above buffer.memory")

    # The application.

    def produce(self, partition: int, numbers: list[int]) -> None:
        self.waiting.append((partition, numbers[partition]))
        numbers[partition] += 1
        self.let_in()

    def let_in(self) -> None:
        while self.waiting and self.append(*self.waiting[0]):
            self.waiting.pop(0)

    def append(self, partition: int, number: int) -> bool:
        key = (partition, number)
        value = b"%d." % number + b"x" * self.random.choice([5, 40, 90])

        def told(error: ProduceError | None, metadata: RecordMetadata) -> None:
            if key in self.outcomes:
                self.violations.append(f"{key} has two outcomes")
            self.outcomes[key] = metadata, error
            self.check_time(key)

        now_ms = self.now_ms
        opened = self.accumulator.open_batches("t").get(partition)
        future = None if opened is None else opened.try_append(now_ms, None, value, (), told)
        if future is None:
            if self.free < self.batch_size:
                return False
            batch = ProducerBatch("t", partition, self.batch_size, 0, now_ms)
            batch.try_append(now_ms, None, value, (), told)
            self.free -= batch.memory_bytes
            self.accumulator.add(batch)
        self.appended_ms[key] = now_ms
        return True

    def check_time(self, key: tuple[int, int]) -> None:
        # A record may be appended to a batch that is older than it.
        took_ms = self.now_ms - max(self.appended_ms[key], HEAL_MS)
        if self.now_ms - self.appended_ms[key] > self.delivery_timeout_ms:
            self.violations.append(f"{key} waited longer than delivery.timeout.ms")
        if took_ms > SETTLING_MS:
            self.violations.append(f"{key} took {took_ms} ms with nothing in its way")

    # Time and faults.

    def at(self, at_ms: int, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (at_ms, self.random.getrandbits(40), event))

    def after(self, delay_ms: int, event: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, event)

    def strikes(self, name: str) -> bool:
        if self.now_ms < HEAL_MS and self.random.random() < self.odds[name]:
            self.counts[name] += 1
            return True
        return False

    def tick(self) -> None:
        at_ms, turns = self.turns
        self.turns = (self.now_ms, turns + 1 if at_ms == self.now_ms else 0)
        if self.turns[1] > TURNS_IN_A_MILLISECOND:
            raise Violation("the sender spins")
        actions = self.core.tick(self.now_ms)
        again = self.core.tick(self.now_ms)
        if left := [each for each in again if not isinstance(each, WakeAt | RefreshMetadata | Connect)]:
            # The producer's thread sleeps now, and nothing might come to wake it.
            raise Violation(f"a tick left {left[0]!r} to the next")
        for action in actions:
            self.carry_out(action)
        if self.is_inspected:
            validate_sender(self.core, self.capacity - self.free)

    def carry_out(self, action: Action) -> None:
        match action:
            case Connect(node):
                self.after(self.random.randint(1, 5), lambda: self.connect(node))
            case SendProduce():
                self.send(action)
            case AskProducerId():
                self.answer_producer_id()
            case RefreshMetadata():
                self.refresh()
            case CompleteBatch(batch, base_offset, log_append_time_ms):
                self.told(batch, batch.complete(base_offset, log_append_time_ms))
            case FailBatch(batch, error, record_errors):
                self.counts["failed"] += 1
                self.told(batch, batch.fail(error, record_errors))
            case WakeAt(at_ms):
                if at_ms not in self.wakes:
                    self.wakes.add(at_ms)
                    self.at(at_ms, lambda: self.wakes.discard(at_ms))

    def told(self, batch: ProducerBatch, is_first: bool) -> None:
        if not is_first:
            raise Violation(f"{batch!r} has two outcomes")
        self.free += batch.memory_bytes
        self.let_in()

    # The cluster.

    def refresh(self) -> None:
        if not self.is_refreshing:
            self.is_refreshing = True
            stale = self.view() if self.strikes("stale-metadata") else None
            self.after(self.random.randint(1, 20), lambda: self.refreshed(stale))

    def refreshed(self, stale: ClusterView | None) -> None:
        self.is_refreshing = False
        self.core.metadata(stale or self.view())

    def view(self) -> ClusterView:
        brokers = {node: BrokerAddress(node, "b", 1) for node in self.nodes}
        partitions = {
            index: PartitionView(index, ErrorCode.NONE, each.leader, each.leader_epoch, (), (), ())
            for index, each in enumerate(self.partitions)
        }
        if self.strikes("no-leader"):
            partitions.pop(self.random.randrange(len(partitions)))
        return ClusterView(None, -1, brokers, {"t": TopicView("t", None, ErrorCode.NONE, False, partitions)})

    def move(self) -> None:
        self.counts["moved"] += 1
        self.random.choice(self.partitions).move(self.random.choice(self.nodes), self.random.random() < 0.5)

    def connect(self, node: int) -> None:
        if self.strikes("no-connection"):
            self.core.disconnected(node, self.now_ms)
        else:
            self.connections[node] = Connection(node)
            self.core.connected(node)

    def end(self, node: int) -> None:
        connection = self.connections.pop(node)
        connection.is_open = False
        connection.loses_rest = self.random.random() < 0.5

    def answer_producer_id(self) -> None:
        if self.strikes("no-producer-id"):
            late = (ErrorCode.REQUEST_TIMED_OUT, -1, -1)
            self.after(REQUEST_TIMEOUT_MS, lambda: self.core.producer_id(self.now_ms, *late))
            return
        self.producer_ids += 1
        self.is_checked_across_ids &= self.producer_ids == 1
        answer = (ErrorCode.NONE, self.producer_ids, self.first_epoch)
        if self.strikes("coordinator-loads"):
            answer = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
        self.after(self.random.randint(1, 10), lambda: self.core.producer_id(self.now_ms, *answer))

    def send(self, request: SendProduce) -> None:
        connection = self.connections[request.node]
        connection.unanswered.add(request.request_id)
        self.after(REQUEST_TIMEOUT_MS, lambda: self.time_out(connection, request.request_id))
        sent = [Sent(each.partition, each.build(), self.refusal()) for each in request.batches]
        delay_ms = self.random.randint(300, 1_800) if self.strikes("stuck") else self.random.randint(1, 8)
        connection.last_arrival_ms = max(connection.last_arrival_ms, self.now_ms + delay_ms)
        self.at_arrival(connection, connection.last_arrival_ms, lambda: self.arrive(connection, request, sent))
        if self.strikes("duplicate"):
            again_ms = connection.last_arrival_ms + self.random.randint(1, 1_000)
            self.at(again_ms, lambda: self.store(request.node, sent))
            self.copied.update((each.partition, value) for each in sent for value in values_of(each.data))
        if self.strikes("break"):
            self.after(self.random.randint(0, 12), lambda: self.break_off(connection))

    def at_arrival(self, connection: Connection, at_ms: int, event: Callable[[], None]) -> None:
        # Same time, same connection: in the order in which they were sent.
        connection.last_arrival_ms = at_ms + 1
        self.at(at_ms, event)

    def break_off(self, connection: Connection) -> None:
        if connection.is_open:
            self.end(connection.node)
            self.core.disconnected(connection.node, self.now_ms)

    def time_out(self, connection: Connection, request_id: int) -> None:
        """What the network client does: a connection whose oldest request has no answer in time is closed."""
        if connection.is_open and request_id in connection.unanswered:
            self.counts["timed-out"] += 1
            self.end(connection.node)
            self.core.disconnected(connection.node, self.now_ms, is_timeout=True)

    def store(self, node: int, sent: Sequence[Sent]) -> dict[int, ErrorCode | Appended]:
        begun = {}
        for index, data, refusal in sent:
            begun[index] = begin(self.partitions[index], node, data, self.max_bytes, refusal)
            self.counts[str(begun[index]) if isinstance(begun[index], ErrorCode) else "stored"] += 1
        return begun

    def arrive(self, connection: Connection, request: SendProduce, sent: Sequence[Sent]) -> None:
        if not connection.is_open and connection.loses_rest:
            return
        begun = self.store(connection.node, sent)
        at_ms = max(self.now_ms + self.random.randint(1, 8), connection.last_answer_ms + 1)
        connection.last_answer_ms = at_ms
        self.at(at_ms, lambda: self.answer(connection, request, begun))

    def answer(self, connection: Connection, request: SendProduce, begun: dict[int, ErrorCode | Appended]) -> None:
        results: dict[tuple[str, int], PartitionResult] = {}
        for index, each in begun.items():
            results[("t", index)] = finish(self.partitions[index], each, self.undecided)
        if connection.is_open and not self.strikes("lost-answer"):
            connection.unanswered.discard(request.request_id)
            self.core.produced(request.node, request.request_id, results, self.now_ms)

    def refusal(self) -> ErrorCode | None:
        return self.random.choice(REFUSALS) if self.strikes("refusal") else None

    def undecided(self) -> ErrorCode | None:
        return self.random.choice(UNDECIDED) if self.strikes("undecided") else None

    # The judgment.

    def judge(self, numbers: Sequence[int]) -> None:
        for partition, count in enumerate(numbers):
            stored = [value for entry in self.partitions[partition].log for value in entry.values]
            times = Counter(stored)
            for number in range(count):
                self.judge_record((partition, number), stored, times[number], is_last=number == count - 1)
            good = [value for value in stored if self.outcomes[(partition, value)][1] is None]
            whole = stored if self.is_idempotent and self.is_checked_across_ids else list(dict.fromkeys(good))
            if self.is_ordered and whole != sorted(whole):
                raise Violation(f"partition {partition} is out of order: {whole}")
        if self.free != self.capacity:
            raise Violation(f"{self.capacity - self.free} bytes of memory were not given back")

    def judge_record(self, key: tuple[int, int], stored: Sequence[int], times: int, *, is_last: bool) -> None:
        if key not in self.outcomes:
            raise Violation(f"{key} has no outcome")
        metadata, error = self.outcomes[key]
        if times > 1 and self.is_idempotent:
            raise Violation(f"{key} is stored {times} times")
        if error is None and not times:
            raise Violation(f"{key} was acknowledged and is not stored")
        if error is None and metadata.offset >= 0 and stored[metadata.offset] != key[1]:
            raise Violation(f"{key} is not at offset {metadata.offset}")
        is_claimed = error is not None and recorded_outcome(error.error_code) == "fail" and key not in self.copied
        if is_claimed and times:
            raise Violation(f"{key} is stored, and {error} says that it certainly is not")
        # The last of each partition comes long after the healing.
        if is_last and error is not None:
            raise Violation(f"{key} failed with nothing in its way: {error}")


#: What may go wrong before the healing; each schedule draws how likely each is.
FAULTS = (
    "break",
    "coordinator-loads",
    "duplicate",
    "lost-answer",
    "move",
    "no-connection",
    "no-leader",
    "no-producer-id",
    "refusal",
    "stale-metadata",
    "stuck",
    "undecided",
)
