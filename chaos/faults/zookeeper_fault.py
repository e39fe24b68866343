"""The base of faults on ZooKeeper: chooses the target, and records what happened to sessions and the controller.

A ZooKeeper fault is over when ZooKeeper serves requests, every broker that runs is registered with it, and every
replica is in sync. Does not own what is done to ZooKeeper: each fault does.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, ClassVar

from chaos.faults.base import Fault, PreconditionMissing, Probe, Reach, until

#: The event in a broker's journal for the end of its session.
EXPIRED = "session-expired"
#: How long the brokers may take to learn that their sessions have expired, and to register again.
_LEARN_MS = 3_000
_BACK_MS = 15_000


class ZooKeeperFault(Fault):
    """A fault on the run's own ZooKeeper, ``_process``."""

    reach: ClassVar[Reach] = "zookeeper"
    hits = "zookeeper"
    #: The participle for the refusal: "ZooKeeper cannot be ...".
    done: ClassVar[str]

    @abstractmethod
    def _told(self) -> str:
        """The description of the target, for the record."""

    @abstractmethod
    def _break(self) -> None:
        """Break ``_process``. Called in a thread."""

    @property
    def _ends_sessions(self) -> bool:
        """Whether sessions are expected to expire. If so, brokers get time to notice."""
        return False

    async def choose(self) -> str:
        found = self.cluster.zookeeper()
        if found is None:
            raise PreconditionMissing(f"ZooKeeper is not this run's own (--zookeeper), so it cannot be {self.done}")
        if not found.is_running() or found.is_suspended():
            raise PreconditionMissing("ZooKeeper does not run")
        self._process = found
        return self._told()

    async def inject(self) -> None:
        self._expired_before = await self.cluster.journaled(EXPIRED)
        self._controller_before = await self.cluster.controller()
        await asyncio.to_thread(self._break)

    async def gone(self) -> Probe:
        served = await until(self._serves, clock=self.clock, timeout_ms=_BACK_MS, interval_ms=100)
        rejoined = await self._rejoined()
        if self._ends_sessions:
            await until(self._learned, clock=self.clock, timeout_ms=_LEARN_MS, interval_ms=500)
        seen: dict[str, Any] = {
            "answers": served,
            "stopped": self._process.is_suspended(),
            "isr_full": rejoined,
            "controller_changed": await self.cluster.controller() != self._controller_before,
            "sessions_expired": await self.cluster.journaled(EXPIRED) - self._expired_before,
        }
        return Probe(served and rejoined, seen)

    async def _serves(self) -> bool:
        cluster = self.cluster
        running = set(await self._running())
        return await cluster.zookeeper_answers(timeout_ms=500) and running <= await cluster.alive()

    async def _learned(self) -> bool:
        return await self.cluster.journaled(EXPIRED) > self._expired_before
