"""Writers: idempotent producers with several batches in flight, each tried again, wherever the leader is, until told.

Owns sequences, retries and the record of what was sent and acknowledged. They are ruder than a real client: each batch
in flight is tried again by itself, so that a later one may come before an earlier one; and they ask whoever takes
itself for the leader, sometimes one that was deposed.
"""

from __future__ import annotations

import asyncio

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.seams.randomness import derive
from tests.simulation.client import Client, Produced, batch
from tests.simulation.evidence import Evidence
from tests.simulation.keys import Keys
from tests.simulation.world import TopicPartition, World

REQUEST_TIMEOUT_MS = 1000
ANSWER_TIMEOUT_MS = 1500
BACKOFFS_S = (0.01, 0.05, 0.05, 0.2)
PAUSES_S = (0.0, 0.0, 0.01, 0.05, 0.2)

#: Answers that end a batch well. The second tells no offset: the batch is below the broker's window.
ACKNOWLEDGED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
#: What a producer tries again; all else is a finding.
RETRIED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
#: How often a log that may have lost what came before is asked for a batch whose turn it is.
PATIENCE = 5
#: The batches of a producer that a broker remembers.
CACHED_BATCHES = 5


class Batch:
    """Some values with consecutive sequences."""

    def __init__(self, base_sequence: int, values: list[bytes], records: bytes) -> None:
        self.base_sequence = base_sequence
        self.values = values
        self.records = records
        self.refusals = 0


class Writer:
    """One producer on one partition. It sends ``limit`` batches, at most ``window`` of them ahead of the oldest that
    is not acknowledged."""

    def __init__(self, world: World, number: int, key: TopicPartition, evidence: Evidence, limit: int) -> None:
        self.name = f"writer {number}"
        self.key = key
        self.keys = (key,)
        self.is_stopping = False
        self._world = world
        self._evidence = evidence
        self._limit = limit
        self._random = derive(world.topology.seed, "writer", number)
        self._window = self._random.choice((1, 5, 5, 5, 8))
        self._codec = world.topology.codec
        self._keys = Keys(world.topology, "writer", number)
        self._client: Client | None = None
        self._producer_id = -1
        self._unclean = 0
        #: How far retention had come when this producer began.
        self._retained = 0
        #: The highest sequence of a batch that was acknowledged; -1 if none is.
        self._stored_to = -1
        self._sequence = 0
        self._sent = 0
        #: In the order of their sequences; what is done is taken out.
        self._in_flight: dict[int, asyncio.Task[None]] = {}
        self._reborn = False
        #: The last batch that this producer knows to be in the log; none is at 0.
        self._safe_offset = 0

    def __repr__(self) -> str:
        return f"<Writer {self.name} {self._sent} sent, {len(self._in_flight)} in flight>"

    def deletable(self, _key: TopicPartition) -> int:
        """The offset below which the log may forget this producer's batches.

        The last acknowledged one must stay. And a broker that has read a log without its beginning tells no more than
        the last five batches from new ones (as any Kafka does), so that more of them in flight would be stuck.
        """
        return self._safe_offset if self._window <= CACHED_BATCHES else 0

    async def run(self) -> None:
        """Until it is stopped or has sent its batches, and all of them are acknowledged."""
        try:
            while True:
                await self._begin()
                while not self._reborn and not self.is_stopping and self._sent < self._limit:
                    await self._send_next()
                if not self._reborn:
                    await self._drain()
                if not self._reborn:
                    return
        finally:
            self._give_up()

    def be_reborn(self) -> None:
        """Crash and come back as a new producer: what was in flight is never heard of again."""
        self._reborn = True
        self._give_up()

    async def _begin(self) -> None:
        self._reborn = False
        self._producer_id = await self._fresh_producer_id()
        self._sequence = 0
        self._safe_offset = 0
        self._stored_to = -1
        self._unclean = self._unclean_elections()
        self._retained = self._world.ledger(self.key).retained
        self._world.events.note(self.name, f"is producer {self._producer_id} of {self.key[0]}-{self.key[1]}")

    async def _fresh_producer_id(self) -> int:
        while True:
            running = sorted(self._world.processes)
            try:
                if not running:
                    raise ConnectionError("no broker runs")
                client = Client(await self._connect(self._random.choice(running)))
                answer = await client.send(
                    ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=1000,
                    producer_id=-1, producer_epoch=-1,
                )  # fmt: skip
                client.connection.close()
                if answer.error_code == ErrorCode.NONE:
                    return int(answer.producer_id)
            except (OSError, TimeoutError):
                pass
            await asyncio.sleep(self._random.choice(BACKOFFS_S))

    async def _send_next(self) -> None:
        while self._in_flight and self._sequence_number() - next(iter(self._in_flight)) >= self._window:
            await asyncio.wait(self._in_flight.values(), return_when=asyncio.FIRST_COMPLETED)
        if self._reborn:
            return
        first = self._sent
        values = [b"%s/%d.%d" % (self.name.encode(), first, n) for n in range(self._random.choice((1, 1, 2, 3)))]
        self._sent += 1
        self._evidence.sent.update(values)
        records = batch(
            *map(self._keys.record, values),
            producer_id=self._producer_id,
            base_sequence=self._sequence,
            codec=self._codec,
        )
        number = self._sequence_number()
        ready = Batch(self._sequence, values, records)
        self._sequence += len(values)
        task = asyncio.get_running_loop().create_task(self._deliver(ready))
        self._in_flight[number] = task
        task.add_done_callback(lambda done: self._delivered(number, done))
        await asyncio.sleep(self._random.choice(PAUSES_S))

    def _sequence_number(self) -> int:
        return self._sent

    def _delivered(self, number: int, task: asyncio.Task[None]) -> None:
        self._in_flight.pop(number, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._world.problems.append(("broken", f"{self.name}: {type(error).__name__}: {error}"))

    async def _drain(self) -> None:
        while self._in_flight and not self._reborn:
            await asyncio.wait(self._in_flight.values())

    def _give_up(self) -> None:
        for task in self._in_flight.values():
            task.cancel()

    async def _deliver(self, ready: Batch) -> None:
        attempt = 0
        while True:
            attempt += 1
            answer = await self._attempt(ready)
            if answer is not None:
                self._world.events.note(
                    self.name, f"{ready.base_sequence}+{len(ready.values)} #{attempt} {answer.error.name} "
                    f"{answer.base_offset}",
                )  # fmt: skip
                if answer.error in ACKNOWLEDGED:
                    told = answer.base_offset
                    self._safe_offset = max(self._safe_offset, told)
                    self._stored_to = max(self._stored_to, ready.base_sequence)
                    for n, value in enumerate(ready.values):
                        self._evidence.acknowledged[value] = told + n if told >= 0 else -1
                    return
                if answer.error not in RETRIED:
                    self._world.problems.append(("refused", f"{self.name}: {answer.error.name} for {ready.values}"))
                    return
                if answer.error is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    self._client = None
                elif self._is_hopeless(ready):
                    self._world.events.count("producer reset")
                    self._world.events.note(self.name, "what came before is lost: it begins again")
                    self.be_reborn()
            await asyncio.sleep(self._random.choice(BACKOFFS_S))

    def _is_hopeless(self, ready: Batch) -> bool:
        """Whether a batch whose turn it is was refused again and again, by a log that may have lost what came before:
        after an unclean election, or by a replica that begins where retention has come to (KIP-360). Or a later batch
        was acknowledged: then this one is there, and older than those that a start remembers of a log that lacks some;
        or it was overtaken on its way by one that such a log took for the producer's first.
        """
        oldest = next(iter(self._in_flight), None)
        ledger = self._world.ledger(self.key)
        lacks_some = self._evidence.is_compacted or self._evidence.gone_below(ledger) > 0
        lost = (
            self._unclean_elections() != self._unclean
            or ledger.retained > self._retained
            or (lacks_some and self._stored_to > ready.base_sequence)
        )
        if self._in_flight.get(oldest) is not asyncio.current_task() or not lost:
            return False
        ready.refusals += 1
        return ready.refusals > PATIENCE

    def _unclean_elections(self) -> int:
        return len(self._world.observer.unclean.get(self.key, ()))

    async def _attempt(self, ready: Batch) -> Produced | None:
        """One request; None if nothing is known of its fate."""
        client = self._client
        self._world.events.note(self.name, f"sends {ready.base_sequence}+{len(ready.values)}")
        try:
            if client is None or client.connection.is_closed:
                client = await self._leader()
                self._client = client
            return await client.produce(
                self.key[0], ready.records, partition=self.key[1], timeout_ms=REQUEST_TIMEOUT_MS
            )
        except (OSError, TimeoutError) as error:
            self._world.events.note(self.name, f"{ready.base_sequence}+{len(ready.values)} {type(error).__name__}")
            if self._client is client:
                self._client = None
            return None

    async def _leader(self) -> Client:
        """Somebody who takes itself for the leader: mostly the newest, now and then one of yesterday."""
        believers = self._world.believers(*self.key)
        if not believers:
            raise ConnectionError("nobody leads")
        chosen = believers[0] if self._random.random() < 0.8 else self._random.choice(believers)
        return Client(await self._connect(chosen))

    async def _connect(self, broker_id: int):
        if not self._world.is_running(broker_id):
            raise ConnectionError(f"broker {broker_id} does not run")
        return await self._world.connect(broker_id, timeout_ms=ANSWER_TIMEOUT_MS)
