"""Late: a transactional producer in single requests, one of which arrives when its transaction is over.

Owns what no real client does on purpose, and every network does: a record that comes after the marker of its
transaction, in the same epoch, is to be refused, or readers of committed records would wait behind it (KIP-890).
"""

from __future__ import annotations

import asyncio
from typing import Any

from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.coordinator.partitioning import partition_for
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.seams.randomness import derive
from tests.simulation.client import Client, batch
from tests.simulation.coordination.drawn import INPUT
from tests.simulation.coordination.told import Told, Transaction
from tests.simulation.seen import TopicPartition
from tests.simulation.world import World

TIMEOUT_MS = 1000
ROUNDS, ATTEMPTS = 6, 30
AGAIN_S = (0.02, 0.1)
LATER_S = (0.0, 0.05, 0.3, 1.0)


class LateProducer:
    """One transactional id. Its coordinator is found by what ``world`` sees."""

    def __init__(self, world: World, number: int, partitions: int, states: int, told: Told) -> None:
        self.name = f"late {number}"
        self.is_stopping = False
        self._id = f"late-{number}"
        self._world = world
        self._told = told
        self._random = derive(world.topology.seed, self.name)
        self._partitions = partitions
        self._coordinator = (TRANSACTIONS_TOPIC, partition_for(self._id, states))
        self._producer = (-1, -1)
        self._sequence = 0

    def __repr__(self) -> str:
        return f"<LateProducer {self._id} {self._producer}>"

    async def run(self) -> None:
        """Until it is stopped or has had its rounds."""
        for number in range(ROUNDS):
            if self.is_stopping:
                return
            key = (INPUT, self._random.randrange(self._partitions))
            if await self._initialize():
                await self._round(number, key)
            await asyncio.sleep(self._random.choice(LATER_S))

    async def _round(self, number: int, key: TopicPartition) -> None:
        tag, is_commit = f"{self._id}/{number}", self._random.random() < 0.5
        transaction = self._told.begin(self._id, tag)
        transaction.is_committed = False
        if not await self._add(key) or not await self._write(transaction, f"{tag}.0", key):
            return
        transaction.is_committed = None
        if not await self._end(commit=is_commit):
            return
        transaction.is_committed = is_commit
        await asyncio.sleep(self._random.choice(LATER_S))
        # Before the marker it is one more record of the transaction.
        late = self._told.begin(self._id, f"{tag} late")
        self._world.events.count("record after the end of its transaction")
        await self._write(late, f"{tag}.late", key, attempts=1)

    async def _initialize(self) -> bool:
        answer = await self._asked(
            self._coordinator, ApiKey.INIT_PRODUCER_ID, 4,
            transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1,
        )  # fmt: skip
        if answer is None:
            return False
        self._producer, self._sequence = (answer.producer_id, answer.producer_epoch), 0
        self._told.initialized(self._id, self._world.loop.now)
        return True

    async def _add(self, key: TopicPartition) -> bool:
        topic = request_class(ApiKey.ADD_PARTITIONS_TO_TXN).AddPartitionsToTxnTopic(name=key[0], partitions=[key[1]])
        producer_id, epoch = self._producer
        fields = {"transactional_id": self._id, "producer_id": producer_id, "producer_epoch": epoch, "topics": [topic]}
        named = {f"v3_and_below_{name}": value for name, value in fields.items()}
        return await self._asked(self._coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, 3, **named) is not None

    async def _end(self, *, commit: bool) -> bool:
        producer_id, epoch = self._producer
        answer = await self._asked(
            self._coordinator, ApiKey.END_TXN, 3,
            transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, committed=commit,
        )  # fmt: skip
        return answer is not None

    async def _write(self, transaction: Transaction, text: str, key: TopicPartition, attempts: int = ATTEMPTS) -> bool:
        value = text.encode()
        transaction.values[value] = key
        producer_id, epoch = self._producer
        records = batch(
            value, producer_id=producer_id, producer_epoch=epoch, base_sequence=self._sequence, transactional=True
        )
        for _ in range(attempts):
            try:
                client = await self._client(key)
                answer = await client.produce(key[0], records, partition=key[1], transactional_id=self._id)
                client.connection.close()
            except (OSError, TimeoutError):
                answer = None
            told = "nothing" if answer is None else answer.error.name
            self._world.events.note(self.name, f"{text} to {key[0]}-{key[1]}: {told}")
            if answer is not None and answer.error is ErrorCode.NONE:
                transaction.acknowledged[value] = answer.base_offset
                self._sequence += 1
                return True
            await asyncio.sleep(self._random.choice(AGAIN_S))
        return False

    async def _asked(self, place: TopicPartition, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """The answer without an error; None if none comes, or only after too long."""
        for _ in range(ATTEMPTS):
            try:
                client = await self._client(place)
                answer = await client.send(api_key, version, **fields)
                client.connection.close()
            except (OSError, TimeoutError):
                answer = None
            if answer is not None and _error(answer) == ErrorCode.NONE:
                return answer
            if self.is_stopping:
                return None
            await asyncio.sleep(self._random.choice(AGAIN_S))
        return None

    async def _client(self, place: TopicPartition) -> Client:
        believers = self._world.believers(*place)
        if not believers:
            raise ConnectionError("nobody leads")
        return Client(await self._world.connect(believers[0], timeout_ms=TIMEOUT_MS))


def _error(answer: Any) -> int:
    """The one error code that an answer has."""
    topics = getattr(answer, "results_by_topic_v3_and_below", None)
    found = [each.partition_error_code for topic in topics for each in topic.results_by_partition] if topics else []
    return int(found[0] if found else answer.error_code)
