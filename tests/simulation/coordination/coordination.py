"""Coordination: all transactional programs and groups of one seed: they begin, come to an end, and are judged.

Owns what the story asks of them as a whole. Does not own what any of them does, nor what must hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cluster.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cluster.protocol.apis import ApiKey
from cluster.seams.randomness import derive
from tests.simulation.client import Client
from tests.simulation.consuming import ConsumingReader
from tests.simulation.coordination import group_oracle, txn_log, txn_oracle
from tests.simulation.coordination.copying import Copier
from tests.simulation.coordination.decisions import audit, decisions
from tests.simulation.coordination.drawn import INPUT, OUTPUT, TOPIC_CONFIG, Drawn
from tests.simulation.coordination.late import LateProducer
from tests.simulation.coordination.looks import Looks
from tests.simulation.coordination.member_life import settings_of
from tests.simulation.coordination.members import Member
from tests.simulation.coordination.told import Told
from tests.simulation.coordination.transacting import TransactionalWriter
from tests.simulation.coordination.txn_log import TxnLog
from tests.simulation.evidence import Evidence
from tests.simulation.kept import Finding
from tests.simulation.oracle import replicas_differ, two_leaders
from tests.simulation.seen import TopicPartition
from tests.simulation.world import World

GROUP, COPYING = "reading", "copying"
OUTPUTS = 2
#: FindCoordinator: of what a coordinator is sought.
OF_GROUP, OF_TRANSACTION = 0, 1
#: How long programs have to come to their ends: the longest timeout of a transaction, and some time for its markers; or
#: the longest session and rebalance.
DONE_S = 40


class Coordination:
    """Of a seed that has it."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        self.told = Told()
        self._world = world
        self._inputs = [(INPUT, number) for number in range(drawn.partitions)]
        self._outputs = [(OUTPUT, number) for number in range(OUTPUTS if drawn.copiers else 0)]
        counts = drawn.properties
        self._states = [
            (TRANSACTIONS_TOPIC, number) for number in range(int(counts["transaction.state.log.num.partitions"]))
        ]
        self._offsets = [(OFFSETS_TOPIC, number) for number in range(int(counts["offsets.topic.num.partitions"]))]
        self._writers: list[TransactionalWriter | LateProducer] = [
            TransactionalWriter(world, number, self.told) for number in range(drawn.writers)
        ]
        late = [LateProducer(world, n, drawn.partitions, len(self._states), self.told) for n in range(drawn.late)]
        self._writers += late
        random = derive(world.topology.seed, "groups")
        isolation = random.choice(("read_committed", "read_committed", "read_uncommitted"))
        reading = {**settings_of(random), "isolation.level": isolation}
        copying = settings_of(random)
        self._members = [Member(world, number, GROUP, reading, self.told) for number in range(drawn.members)]
        self._copiers = [Copier(world, number, COPYING, copying, self.told) for number in range(drawn.copiers)]
        self._groups = [*([GROUP] if drawn.members else []), *([COPYING] if drawn.copiers else [])]
        if not self._groups:
            self._offsets = []
        self.told.only_committed = {COPYING} | ({GROUP} if isolation == "read_committed" else set())
        self._looks = Looks(world, self._groups, self._inputs, len(self._offsets) or 1, self.told)
        self._readers: list[ConsumingReader] = []
        self._writing: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Coordination of {self._writers}, {self._members}, {self._copiers}>"

    async def begin(self) -> None:
        """Make the topics, and let everybody begin."""
        world = self._world
        await world.create_topic(INPUT, len(self._inputs), 3, **TOPIC_CONFIG)
        if self._outputs:
            await world.create_topic(OUTPUT, OUTPUTS, 3, **TOPIC_CONFIG)
        wanted = [(OF_TRANSACTION, self._states), *([(OF_GROUP, self._offsets)] if self._offsets else [])]
        for kind, keys in wanted:
            await self._find_coordinator(kind)
            await world.until(lambda keys=keys: all(world.state(*key) is not None for key in keys))
        world.beside += [*self._inputs, *self._outputs, *self._states, *self._offsets]
        for key in [*self._inputs, *self._outputs]:
            evidence = Evidence(f"{key[0]}-{key[1]}")
            name = f"committed {key[0]}-{key[1]}"
            reader = ConsumingReader(world, name, key, evidence, isolation="read_committed")
            self.told.read[key] = evidence.read
            self._readers.append(reader)
        self._writing = [world.background(each.run, each.name) for each in self._writers]
        others = [*self._readers, *self._members, *self._copiers]
        self._tasks = [world.background(each.run, each.name) for each in others]
        self._tasks.append(world.background(self._looks.run, "looks"))

    async def _find_coordinator(self, kind: int) -> None:
        client = Client(await self._world.connect(min(self._world.processes)))
        await client.send(ApiKey.FIND_COORDINATOR, 3, key="anything", key_type=kind)
        client.connection.close()

    # The end

    def stop_writing(self) -> None:
        """No transaction begins anymore, and nobody leaves a group."""
        for each in (*self._writers, *self._members, *self._copiers):
            each.is_stopping = True

    def steps(self) -> list[tuple[str, Callable[[], bool], int]]:
        """What is to be reached in the end, and in how many seconds."""
        return [
            ("transactional programs are done", lambda: all(task.done() for task in self._writing), DONE_S),
            ("what was consumed is committed", self._all_is_committed, DONE_S),
            ("no transaction is open", self._nothing_is_open, DONE_S),
            ("readers of committed records are at the end", self._all_is_read, DONE_S),
        ]

    def _all_is_committed(self) -> bool:
        ends = {key: self._end(key) for key in self._inputs}
        for programs in (self._members, self._copiers):
            stored: dict[TopicPartition, int] = {}
            for program in programs:
                stored |= program.has_stored
            if programs and stored != ends:
                return False
        return True

    def _nothing_is_open(self) -> bool:
        for key in [*self._inputs, *self._outputs, *self._offsets]:
            believers = self._world.believers(*key)
            replica = self._world.replica(believers[0], key) if believers else None
            if replica is None or replica.log.last_stable_offset(replica.high_watermark) != replica.log.log_end_offset:
                return False
        return True

    def _all_is_read(self) -> bool:
        return all(reader.position == self._end(reader.key) for reader in self._readers)

    def _end(self, key: TopicPartition) -> int:
        believers = self._world.believers(*key)
        replica = self._world.replica(believers[0], key) if believers else None
        return -1 if replica is None else replica.log.log_end_offset

    async def look(self) -> None:
        """At the end, the last stable offset is where the log ends."""
        for key in self._inputs:
            try:
                stable = await self._looks.stable(key)
            except (OSError, TimeoutError):
                stable = None
            if stable != self._end(key):
                text = f"{key[0]}-{key[1]} ends at {self._end(key)}, and its last stable offset is {stable}"
                self._world.problems.append(("inconsistent-offsets", text))

    def judge(self) -> list[Finding]:
        """Everything that is wrong."""
        world = self._world
        logs: dict[TopicPartition, TxnLog] = {}
        findings: list[Finding] = []
        for key in [*self._inputs, *self._outputs, *self._offsets]:
            evidence = Evidence(f"{key[0]}-{key[1]}")
            evidence.ledger = world.ledger(key)
            evidence.logs = {each: world.log_bytes(each, *key) for each in world.assigned(*key)}
            evidence.starts = dict.fromkeys(evidence.logs, 0)
            findings += [
                (name, f"{evidence.name}: {text}")
                for name, text in (*replicas_differ(evidence), *two_leaders(evidence))
            ]
            logs[key] = txn_log.read(next(iter(evidence.logs.values())))
        written = {key: logs[key] for key in (*self._inputs, *self._outputs)}
        inputs = {key: logs[key] for key in self._inputs}
        decided = [each for key in self._states for each in decisions(world.ledger(key).history(self._end(key)))]
        counted = group_oracle.commits(logs[key] for key in self._offsets)
        findings += txn_oracle.judge(self.told, written, world.appended_at)
        findings += audit(decided, logs)
        findings += group_oracle.judge(self.told, counted, inputs)
        if self._copiers:
            findings += group_oracle.copies(COPYING, counted, inputs, [logs[key] for key in self._outputs])
        return list(dict.fromkeys(findings))

    def leave(self) -> None:
        for task in (*self._writing, *self._tasks):
            task.cancel()
