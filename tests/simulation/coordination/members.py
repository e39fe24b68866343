"""Members: programs of a group that read and commit; they leave, crash and come back, some under an instance id.

Owns what such a program does, and what it notes of its commits. Does not own generations, positions or heartbeats:
that is what is under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.group.group_errors import CommitFailed, FencedInstanceId, RebalanceInProgress
from cluster.client.consumer.results import ConsumerError
from cluster.seams.randomness import derive
from tests.simulation.coordination.member_life import MemberLife
from tests.simulation.coordination.told import Commit, Told
from tests.simulation.seen import TopicPartition
from tests.simulation.world import World

LIVES_S = (0.5, 2.0, 5.0, 1000.0)
AWAY_S = (0.0, 0.3, 2.0)
LOOKS_S = (0.05, 0.1, 0.3)
#: How many members have an instance id, and how many lives end without a word.
STATIC, CRASHES = 0.3, 0.5
#: What a program may do that was refused: it polls again.
REFUSALS = (CommitFailed, RebalanceInProgress)


class Member:
    """One program, life after life. ``settings`` are the group's."""

    def __init__(self, world: World, number: int, group_id: str, settings: Mapping[str, object], told: Told) -> None:
        self.name = f"member {number}"
        self.group_id = group_id
        self.is_stopping = False
        self.life: MemberLife | None = None
        self._world = world
        self._told = told
        self._random = derive(world.topology.seed, self.name)
        is_static = self._random.random() < STATIC
        self._settings = {**settings, **({"group.instance.id": f"instance {number}"} if is_static else {})}
        self._interval_s = self._random.choice(LOOKS_S)
        self._lives = self._commits = 0
        self._is_asking = False

    def __repr__(self) -> str:
        return f"<Member {self.name} of {self.group_id}, {self.life!r}>"

    async def run(self) -> None:
        """Until it is cancelled: then it leaves."""
        settings = " ".join(f"{name}={value}" for name, value in self._settings.items())
        self._world.events.note(self.name, f"of {self.group_id} {settings}")
        while True:
            self._lives += 1
            life = self.life = MemberLife(
                self._world, f"{self.name}.{self._lives}", self.group_id, self._settings, self._told
            )
            self._is_asking = False
            await self._live(life, self._world.loop.now + self._random.choice(LIVES_S))
            self.life = None
            if self._random.random() < CRASHES:
                self._world.events.note(life.name, "crashes")
                self._world.events.count("member crashed")
                life.kill()
            else:
                self._world.events.note(life.name, "leaves")
                await life.leave()
            await asyncio.sleep(self._random.choice(AWAY_S))

    @property
    def has_stored(self) -> Mapping[TopicPartition, int]:
        """Where it is in each partition, if it was told that this is stored."""
        if self.life is None:
            return {}
        stored = self.life.stored
        return {key: offset for key, offset in self.life.positions.items() if stored.get(key, 0) == offset}

    async def _live(self, life: MemberLife, until_s: float) -> None:
        while self.is_stopping or self._world.loop.now < until_s:
            try:
                life.poll()
                self._commit(life)
            except FencedInstanceId:
                self._world.events.count("member fenced")
                return
            except REFUSALS:
                pass
            await life.something(self._interval_s)

    def _commit(self, life: MemberLife) -> None:
        """Commit where it is, unless that is stored, or what was asked for before has no answer yet."""
        due = {key: offset for key, offset in life.positions.items() if offset > life.stored.get(key, 0)}
        if not due or self._is_asking:
            return
        self._commits += 1
        self._is_asking = True
        commit = Commit(life.group_id, f"{life.name}/{self._commits}", due)
        self._told.commits.append(commit)

        def answered(_offsets: object, error: ConsumerError | None) -> None:
            self._is_asking = False
            self._answered(life, commit, error)

        offsets = {key: OffsetAndMetadata(offset, metadata=commit.tag) for key, offset in due.items()}
        life.consumer.commit_async(offsets, answered)

    def _answered(self, life: MemberLife, commit: Commit, error: ConsumerError | None) -> None:
        commit.told_s = self._world.loop.now
        if error is None:
            commit.is_stored = True
            for key in commit.offsets.keys() & life.positions.keys():
                life.stored[key] = commit.offsets[key]
        elif isinstance(error, REFUSALS):
            commit.is_stored = False
        outcome = "stored" if error is None else type(error).__name__
        self._world.events.count(f"commit {outcome}")
        self._world.events.note(life.name, f"commit {commit.tag} {outcome}")
