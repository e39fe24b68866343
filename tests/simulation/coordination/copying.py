"""Copying: members of a group that copy what they are given, offsets and copies in one transaction (KIP-447).

Owns what such a program does: each record is to be copied once, whatever happens. After an error that it cannot judge
it begins again, as another member with another producer. Does not own what keeps copies single: that is under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.results import ConsumerRecord
from cluster.client.producer.transaction.transaction_errors import FatalTransactionError, TransactionError
from cluster.seams.randomness import derive
from tests.simulation.coordination.drawn import OUTPUT
from tests.simulation.coordination.member_life import MemberLife
from tests.simulation.coordination.members import AWAY_S, LIVES_S, LOOKS_S
from tests.simulation.coordination.producer_life import ProducerLife
from tests.simulation.coordination.producer_life import settings_of as producer_settings
from tests.simulation.coordination.told import Commit, Told, Transaction
from tests.simulation.seen import TopicPartition
from tests.simulation.world import World

#: Of its lives, how many end in the middle of a transaction; and how long it works on what it was given.
CRASHES = 0.5
WORK_S = (0.0, 0.0, 0.05, 0.5)
#: How likely a program is slow between its offsets and its commit, and how slow: its group does not wait for so long.
SLOW, SLOW_S = 0.05, 3.5


class Copier:
    """One program with a transactional id of its own, life after life. ``settings`` are the group's."""

    def __init__(self, world: World, number: int, group_id: str, settings: Mapping[str, object], told: Told) -> None:
        self.name = f"copier {number}"
        self.group_id = group_id
        self.is_stopping = False
        self.life: MemberLife | None = None
        self._id = f"copy-{number}"
        self._world = world
        self._told = told
        self._random = derive(world.topology.seed, self.name)
        self._settings = {**settings, "isolation.level": "read_committed"}
        timeout_ms = self._random.choice((2000, 5000, 5000))
        self._producer_settings = {**producer_settings(self._random), "transaction.timeout.ms": timeout_ms}
        self._interval_s = self._random.choice(LOOKS_S)
        self._lives = self._numbers = 0
        self._is_copying = False
        self._commit = Commit(group_id, "", {})

    def __repr__(self) -> str:
        return f"<Copier {self.name}, {self._numbers} transactions, {self.life!r}>"

    @property
    def has_stored(self) -> Mapping[TopicPartition, int]:
        """Where it is in each partition: what it is not copying is committed."""
        return {} if self.life is None or self._is_copying else self.life.positions

    async def run(self) -> None:
        """Until it is cancelled."""
        settings = {**self._settings, **self._producer_settings}
        self._world.events.note(self.name, " ".join(f"{name}={value}" for name, value in settings.items()))
        while True:
            self._lives += 1
            name = f"{self.name}.{self._lives}"
            producer = ProducerLife(self._world, f"{name} producer", self._id, self._producer_settings)
            await producer.initialize(OUTPUT)
            self._told.initialized(self._id, self._world.loop.now)
            life = self.life = MemberLife(self._world, name, self.group_id, self._settings, self._told)
            until_s = self._world.loop.now + self._random.choice(LIVES_S)
            crashes = self._random.random() < CRASHES
            if await self._live(life, producer, until_s, crashes=crashes):
                await producer.close()
                self.life = None
                await life.leave()
            else:
                self._world.events.note(life.name, "crashes")
                self._world.events.count("copier crashed")
                self.life = None
                producer.kill()
                life.kill()
            await asyncio.sleep(self._random.choice(AWAY_S))

    async def _live(self, life: MemberLife, producer: ProducerLife, until_s: float, *, crashes: bool) -> bool:
        """Whether it ends in order."""
        while self.is_stopping or self._world.loop.now < until_s:
            records = life.poll()
            self._is_copying = bool(records)
            if records and not await self._copy(life, producer, records):
                return False
            self._is_copying = False
            await life.something(0.0 if records else self._interval_s)
        if not crashes:
            return True
        while not (records := life.poll()) and not self.is_stopping:
            await life.something(self._interval_s)
        if records:
            copying = asyncio.get_running_loop().create_task(self._copy(life, producer, records))
            await asyncio.sleep(self._random.choice((0.0, 0.01, 0.05)))
            copying.cancel()
            await asyncio.wait([copying])
        return False

    async def _copy(self, life: MemberLife, producer: ProducerLife, records: list[ConsumerRecord]) -> bool:
        """Copy these in one transaction. Whether the program knows where it is then."""
        self._numbers += 1
        transaction = self._told.begin(self._id, f"{self._id}/{self._numbers}")
        self._commit = Commit(self.group_id, transaction.tag, {})
        self._told.commits.append(self._commit)
        may_be_committed = False
        try:
            try:
                await self._written(life, producer, transaction, records)
                transaction.ending_s = self._world.loop.now
                await producer.repeat(producer.producer.commit_transaction)
                return self._note(transaction, is_committed=True)
            except FatalTransactionError:
                raise
            except TransactionError as error:
                self._world.events.count(f"copies to be aborted {error.error_code.name}")
                may_be_committed = error.may_be_committed
            await producer.repeat(producer.producer.abort_transaction)
        except FatalTransactionError as error:
            self._world.events.count(f"copies failed {error.error_code.name}")
            return self._note(transaction, is_committed=None if error.may_be_committed else False)
        if may_be_committed:
            return self._note(transaction, is_committed=None)
        self._note(transaction, is_committed=False)
        _seek_back(life, records)
        return True

    async def _written(
        self, life: MemberLife, producer: ProducerLife, transaction: Transaction, records: list[ConsumerRecord]
    ) -> None:
        producer.producer.begin_transaction()
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for record in records:
            value = f"{record.topic}-{record.partition}@{record.offset} of {transaction.tag}".encode()
            producer.send(transaction, value, OUTPUT, record.offset % 2)
            key = (record.topic, record.partition)
            offsets[key] = OffsetAndMetadata(record.offset + 1, metadata=transaction.tag)
        self._commit.offsets = {key: each.offset for key, each in offsets.items()}
        await asyncio.sleep(self._random.choice(WORK_S))
        # Which generation it is a member of is known before what was given to it may be given to another.
        member = life.consumer.group_metadata()
        await producer.repeat(lambda: producer.producer.send_offsets_to_transaction(offsets, member))
        if self._random.random() < SLOW:
            self._world.events.count("copier was slow")
            await asyncio.sleep(SLOW_S)

    def _note(self, transaction: Transaction, *, is_committed: bool | None) -> bool:
        transaction.is_committed = self._commit.is_stored = is_committed
        self._commit.told_s = self._world.loop.now
        told = {True: "committed", False: "aborted", None: "in doubt"}[is_committed]
        self._world.events.count(f"copies {told}")
        self._world.events.note(self.name, f"{transaction.tag} {told}")
        return is_committed is True


def _seek_back(life: MemberLife, records: list[ConsumerRecord]) -> None:
    """Nothing of these was copied: they are to be given again, if they are still to be given to this member."""
    assigned = life.consumer.assignment()
    for record in reversed(records):
        key = (record.topic, record.partition)
        if key in assigned:
            life.consumer.seek(key, record.offset)
