"""Readers: consumers that read a partition as it grows, from whoever takes itself for its leader.

Owns the position and the record of what was read. A reader names the leader epoch it believes in, so that the high
watermark that it is told belongs to that epoch: there it must never go back. It goes on at the start of the log if its
position was deleted, and begins again after an unclean election.
"""

from __future__ import annotations

import asyncio

from cluster.protocol.errors import ErrorCode
from cluster.seams.randomness import derive
from tests.simulation.client import Client, Fetched
from tests.simulation.oracle import Evidence
from tests.simulation.world import TopicPartition, World

MAX_WAIT_MS = 300
ANSWER_TIMEOUT_MS = 1500
BACKOFFS_S = (0.02, 0.1, 0.3)
EARLIEST = -2
SIZES = (300, 2000, 1 << 20)


class Reader:
    """Reads one partition from offset 0 until it is stopped."""

    def __init__(self, world: World, number: int, key: TopicPartition, evidence: Evidence) -> None:
        self.name = f"reader {number}"
        self.position = 0
        self._world = world
        self.key = key
        self._evidence = evidence
        self._read: list[tuple[int, bytes, int]] = []
        #: How many unclean elections lie before what it reads now.
        self._unclean = 0
        self._random = derive(world.topology.seed, "reader", number)
        #: leader epoch -> the highest watermark seen in it
        self._watermarks: dict[int, int] = {}
        self._client: Client | None = None
        self._broker_id = -1
        evidence.read.append(self._read)

    def __repr__(self) -> str:
        return f"<Reader {self.name} at {self.position}>"

    @property
    def is_up_to_date(self) -> bool:
        """Whether it reads what came after the last unclean election."""
        return self._unclean == len(self._world.observer.unclean.get(self.key, ()))

    async def run(self) -> None:
        self._world.events.note(self.name, f"reads {self.key[0]}-{self.key[1]}")
        while True:
            try:
                if self._client is None or self._client.connection.is_closed:
                    await self._connect()
                found = await self._fetch()
            except (OSError, TimeoutError):
                self._client = None
                found = None
            if found is None or found.error is not ErrorCode.NONE:
                if found is not None and found.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._seek()
                elif found is not None:
                    self._world.events.note(self.name, f"at {self.position}: {found.error.name}")
                    self._client = None
                await asyncio.sleep(self._random.choice(BACKOFFS_S))

    async def _connect(self) -> None:
        believers = self._world.believers(*self.key)
        if not believers:
            raise ConnectionError("nobody leads")
        chosen = believers[0] if self._random.random() < 0.7 else self._random.choice(believers)
        self._client = Client(await self._world.connect(chosen, timeout_ms=ANSWER_TIMEOUT_MS))
        self._broker_id = chosen

    async def _fetch(self) -> Fetched | None:
        """One fetch in the leader epoch that the broker is in; None if it leads no more."""
        replica = self._world.replica(self._broker_id, self.key)
        if self._client is None or replica is None or replica.leader is None:
            self._client = None
            return None
        epoch = replica.leader_epoch
        if not self._belongs(epoch):
            self._client = None
            return None
        found = await self._client.fetch(
            self.key[0],
            self.position,
            partition=self.key[1],
            max_wait_ms=MAX_WAIT_MS,
            partition_max_bytes=self._random.choice(SIZES),
            leader_epoch=epoch,
        )
        if found.error is ErrorCode.NONE:
            self._take(found, epoch)
        return found

    def _belongs(self, epoch: int) -> bool:
        """Whether an epoch goes on with what was read. After an unclean election everything begins again."""
        unclean = self._world.observer.unclean_before(self.key, epoch)
        if unclean > self._unclean:
            self._unclean, self.position, self._read = unclean, 0, []
            self._evidence.read.append(self._read)
            self._world.events.note(self.name, f"begins again in epoch {epoch}")
        return unclean == self._unclean

    async def _seek(self) -> None:
        """Go on where the log begins, if that is later: what was skipped must have been deleted."""
        client = self._client
        try:
            if client is not None:
                error, earliest = await client.list_offset(self.key[0], EARLIEST, partition=self.key[1])
                if error is ErrorCode.NONE and earliest > self.position:
                    self._world.events.note(self.name, f"goes from {self.position} to {earliest}")
                    self._world.events.count("reader found its position deleted")
                    self.position = earliest
        except (OSError, TimeoutError):
            pass
        self._client = None

    def _take(self, found: Fetched, epoch: int) -> None:
        before = self._watermarks.get(epoch, 0)
        if found.high_watermark < before:
            text = f"{self.name}: {found.high_watermark} after {before} in epoch {epoch}"
            self._world.problems.append(("watermark-regression", text))
        self._watermarks[epoch] = max(before, found.high_watermark)
        for offset, _ in found.records:
            if offset >= found.high_watermark:
                self._world.problems.append(
                    ("read-uncommitted", f"{self.name}: offset {offset}, watermark {found.high_watermark}")
                )
        if found.records:
            self._world.events.note(
                self.name, f"read {self.position}..{found.records[-1][0]} of epoch {epoch}, "
                f"watermark {found.high_watermark}",
            )  # fmt: skip
            self._read += [(offset, value, epoch) for offset, value in found.records]
            self.position = found.records[-1][0] + 1
