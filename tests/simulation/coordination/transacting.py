"""Transacting: a program with a transactional id: it writes to several partitions, commits, aborts, crashes in the
middle, stands still, and is replaced by a rival with its id while it does not know it.

Owns what the program does, and what it notes of each transaction. Does not own retries, epochs or sequences: that is
what is under test.
"""

from __future__ import annotations

import asyncio

from cluster.client.producer.transaction.transaction_errors import FatalTransactionError, TransactionError
from cluster.seams.randomness import derive
from tests.simulation.coordination.drawn import INPUT
from tests.simulation.coordination.producer_life import ProducerLife, settings_of
from tests.simulation.coordination.told import Told, Transaction
from tests.simulation.world import World

#: Transactions of one program, at most, and what lies between two of them and between two records.
TRANSACTIONS = 30
PAUSES_S = (0.0, 0.0, 0.05, 0.2)
WITHIN_S = (0.0, 0.0, 0.0, 0.02, 0.2)
STILL_S = (0.5, 1.5, 4.0)
#: Enough for a record to be in the log, if all is well.
WRITTEN_S = 0.1
#: How likely each end of a transaction is; else it is committed.
ENDS = {"abort": 0.2, "crash": 0.07, "rival": 0.08, "still": 0.05}


class TransactionalWriter:
    """One transactional id."""

    def __init__(self, world: World, number: int, told: Told) -> None:
        self.name = f"transactional {number}"
        self.is_stopping = False
        self._id = f"id-{number}"
        self._world = world
        self._told = told
        self._random = derive(world.topology.seed, self.name)
        self._settings = settings_of(self._random)
        self._numbers = self._lives = 0
        self._zombies: list[asyncio.Task[None]] = []
        assert world.topology.coordination is not None
        self._partitions = range(world.topology.coordination.partitions)

    def __repr__(self) -> str:
        return f"<TransactionalWriter {self._id}, {self._numbers} transactions, {self._lives} lives>"

    async def run(self) -> None:
        """Until it is stopped or has had its transactions."""
        self._world.events.note(self.name, " ".join(f"{name}={value}" for name, value in self._settings.items()))
        life = await self._another()
        while not self.is_stopping and self._numbers < TRANSACTIONS:
            life = await self._transaction(life)
            await asyncio.sleep(self._random.choice(PAUSES_S))
        if self._zombies:
            await asyncio.wait(self._zombies)
        await life.close()

    async def _another(self) -> ProducerLife:
        """The next producer with the id. It fences the one before."""
        self._lives += 1
        life = ProducerLife(self._world, f"{self.name}.{self._lives}", self._id, self._settings)
        await life.initialize(INPUT)
        self._told.initialized(self._id, self._world.loop.now)
        self._world.events.note(life.name, "has the id")
        return life

    def _end(self) -> str:
        drawn = self._random.random()
        for end, share in ENDS.items():
            drawn -= share
            if drawn < 0:
                return end
        return "commit"

    async def _transaction(self, life: ProducerLife) -> ProducerLife:
        """One transaction; returns who has the id after it."""
        self._numbers += 1
        end = self._end()
        transaction = self._told.begin(self._id, f"{self._id}/{self._numbers}")
        try:
            if end == "rival":
                return await self._rival(life, transaction)
            await self._written(life, transaction, is_still=end == "still")
            if end == "crash":
                return await self._crashed(life, transaction, is_committing=self._random.random() < 0.5)
            await self._decided(life, transaction, commit=end != "abort")
        except FatalTransactionError as error:
            self._failed(transaction, error)
            life.kill()
            return await self._another()
        return life

    async def _written(self, life: ProducerLife, transaction: Transaction, *, is_still: bool = False) -> None:
        """Some records in some partitions; ``is_still``: it stands still between two of these."""
        life.producer.begin_transaction()
        count = self._random.randint(2 if is_still else 1, len(self._partitions))
        for number, partition in enumerate(self._random.sample(self._partitions, count)):
            if is_still and number == 1:
                await asyncio.sleep(WRITTEN_S)
                await life.stand_still(self._random.choice(STILL_S))
            for each in range(self._random.choice((1, 1, 3))):
                life.send(transaction, f"{transaction.tag}.{partition}.{each}".encode(), INPUT, partition)
            await asyncio.sleep(self._random.choice(WITHIN_S))

    async def _decided(self, life: ProducerLife, transaction: Transaction, *, commit: bool) -> None:
        may_be_committed = False
        if commit:
            transaction.ending_s = self._world.loop.now
            try:
                await life.repeat(life.producer.commit_transaction)
                return self._note(transaction, is_committed=True)
            except FatalTransactionError:
                raise
            except TransactionError as error:
                self._world.events.count(f"transaction to be aborted {error.error_code.name}")
                may_be_committed = error.may_be_committed
        if not commit:
            # Whatever comes of the call, nobody asked for a commit.
            transaction.is_committed = False
        await life.repeat(life.producer.abort_transaction)
        self._note(transaction, is_committed=None if may_be_committed else False)

    async def _crashed(self, life: ProducerLife, transaction: Transaction, *, is_committing: bool) -> ProducerLife:
        """In the middle: nobody commits; or while it commits: nobody knows."""
        if is_committing:
            committing = asyncio.get_running_loop().create_task(self._decided(life, transaction, commit=True))
            await asyncio.sleep(self._random.choice((0.0, 0.01, 0.1)))
            committing.cancel()
            await asyncio.wait([committing])
            if not committing.cancelled() and isinstance(error := committing.exception(), FatalTransactionError):
                self._failed(transaction, error)
        else:
            transaction.is_committed = False
        life.kill()
        self._world.events.count("transactional producer crashed")
        self._world.events.note(life.name, f"{transaction.tag} crashed")
        await asyncio.sleep(self._random.choice((0.0, 1.0, 3.0)))
        return await self._another()

    async def _rival(self, zombie: ProducerLife, transaction: Transaction) -> ProducerLife:
        """Another producer takes the id in the middle of the transaction of one whose program does not know it, and
        begins one of its own meanwhile."""

        async def unaware() -> None:
            try:
                await self._written(zombie, transaction)
                await self._decided(zombie, transaction, commit=True)
                self._world.events.count("zombie was in time")
            except FatalTransactionError as error:
                self._world.events.count(f"zombie {error.error_code.name}")
                self._failed(transaction, error)
            zombie.kill()

        self._zombies.append(self._world.background(unaware, f"{zombie.name} unaware"))
        await asyncio.sleep(self._random.choice((0.0, 0.02, 0.2)))
        return await self._another()

    def _failed(self, transaction: Transaction, error: FatalTransactionError) -> None:
        self._world.events.count(f"transaction failed {error.error_code.name}")
        self._note(transaction, is_committed=None if error.may_be_committed else False)

    def _note(self, transaction: Transaction, *, is_committed: bool | None) -> None:
        transaction.is_committed = is_committed
        told = {True: "committed", False: "aborted", None: "in doubt"}[is_committed]
        self._world.events.count(f"transaction {told}")
        self._world.events.note(self.name, f"{transaction.tag} {told}")
