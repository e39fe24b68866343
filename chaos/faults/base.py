"""What a fault is, and what it may touch. Owns the life of one injection; knows no particular fault.

A fault chooses its target, is injected, probed (did it bite?), held for its duration, healed, probed again (is it
gone?). The conductor drives these steps and records them; a fault never sleeps through its own duration.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal

from chaos.faults.accepted import Rule
from chaos.faults.breakable import WORDS_OF_PARTS, LoadPart, ProcessLife
from chaos.faults.broker_links import links_of_clients
from chaos.faults.damage import Damage
from chaos.faults.under_test import ClusterUnderTest, CoordinatorOf
from chaos.schedules.kinds import FaultKind, Hits
from chaos.schedules.model import Injection
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms

#: What a fault must reach (docs/target.md): the load and its links, brokers' processes, or what only a cluster that
#: gapless starts lets it reach.
Reach = Literal[
    "clients", "processes", "other-links", "zookeeper", "machines", "journals", "topics", "clean-stop", "data"
]


class PreconditionMissing(Exception):
    """The fault has nothing to bite on now (no leader, the target is down); the conductor waits, then skips it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a probe saw: whether it found what it looked for, and the figures that show it."""

    effective: bool
    seen: Mapping[str, Any] = field(default_factory=dict)


async def until(
    condition: Callable[[], Awaitable[bool]], *, clock: Clock, timeout_ms: float, interval_ms: float = 50.0
) -> bool:
    """Ask until the answer is yes or the time is up; what is asked lives in other processes, so there is no event."""
    deadline_ms = clock.monotonic_ms() + timeout_ms
    while True:
        if await condition():
            return True
        if clock.monotonic_ms() >= deadline_ms:
            return False
        await asyncio.sleep(seconds_of_ms(interval_ms))


class Fault(ABC):
    """One injection of one kind of fault."""

    name: ClassVar[str]
    summary: ClassVar[str]
    #: Bounds of the duration in seconds, and the seconds the cluster needs afterwards; for the generator.
    duration_s: ClassVar[tuple[float, float]] = (2.5, 4.0)
    recovery_s: ClassVar[float] = 3.0
    #: What it takes away, so that the generator composes only what leaves something to observe.
    hits: ClassVar[Hits] = "broker"
    #: Whether a broker comes back without something that it had acknowledged.
    loses_data: ClassVar[bool] = False
    #: Whether it waits until every replica is in its ISR.
    needs_sync: ClassVar[bool] = False
    #: What the target of an injection may name; whether its ``link`` may be ``followers``; and its parameters.
    targets: ClassVar[tuple[str, ...]] = ("partition",)
    takes_followers: ClassVar[bool] = False
    accepts: ClassVar[tuple[Rule, ...]] = ()
    #: With fewer of them it can never bite: no one is there to notice, or to take over.
    least_brokers: ClassVar[int] = 1
    least_replicas: ClassVar[int] = 1
    #: Whether it hits the links of clients, unless its target names another.
    hits_client_links: ClassVar[bool] = False
    #: Which coordinators the load must keep at work, else there is nothing that it could hit.
    needs_coordinator: ClassVar[CoordinatorOf | None] = None
    #: Which part of the run's own load it hits.
    needs_load: ClassVar[LoadPart | None] = None
    #: Of which part of the load it kills a process for good, so that there must be two; whether it bites only once.
    kills_load: ClassVar[LoadPart | None] = None
    once: ClassVar[bool] = False
    #: Whether it acts on frames of Kafka's, which only our own proxy knows.
    acts_on_frames: ClassVar[bool] = False
    #: Whether counters show that it took effect: of our own proxy, or else of our own brokers.
    needs_counters: ClassVar[bool] = False
    #: Whether it delivers batches twice, which only idempotence lets brokers notice.
    needs_idempotence: ClassVar[bool] = False
    #: Whether it breaks the disk or the clock of a broker's process, which must have a port for that.
    needs_fault_port: ClassVar[bool] = False
    reach: ClassVar[Reach]
    #: The only system on which it can be made (``sys.platform``); empty if it can be on all.
    system: ClassVar[str] = ""
    #: Whether only its name draws it: no set of faults and no swarm has it.
    by_name_alone: ClassVar[bool] = False
    #: Whether logs must have closed segments, which they have soon if segments are small.
    needs_closed_segments: ClassVar[bool] = False

    def __init__(self, injection: Injection, cluster: ClusterUnderTest, clock: Clock, random: Random) -> None:
        self.injection = injection
        self.cluster = cluster
        self.clock = clock
        self.random = random
        self.damage = Damage(cluster.links)

    @classmethod
    def kind(cls) -> FaultKind:
        return FaultKind(cls.name, cls.duration_s, cls.recovery_s, cls.hits, cls.loses_data, cls.needs_sync, cls.once)

    @classmethod
    def usual_duration_s(cls, session_timeout_ms: int) -> float:
        """Its default duration as a manual fault, where brokers have this session timeout with ZooKeeper."""
        return sum(cls.duration_s) / 2

    @classmethod
    def missed(cls, seen: Mapping[str, Any]) -> str:
        """Why it did not bite, for people; ``seen`` is what the probe saw while it lasted."""
        return str(seen.get("error", "the probe saw no effect"))

    @classmethod
    def needs_of_workload(cls) -> str | None:
        """What a workload must have for it, in words; None if any will do."""
        if cls.needs_coordinator is not None:
            return f"{cls.needs_coordinator}s"
        return None if cls.needs_load is None else WORDS_OF_PARTS[cls.needs_load]

    @abstractmethod
    async def choose(self) -> str:
        """Pick the target and name it for the record. Raises PreconditionMissing."""

    @abstractmethod
    async def inject(self) -> None:
        """Break it."""

    @abstractmethod
    async def bites(self) -> Probe:
        """See whether it bites, waiting for the effect within reason."""

    @abstractmethod
    async def heal(self) -> None:
        """Undo it. Called once, even if ``inject`` failed halfway, so it must tolerate finding nothing to undo."""

    @abstractmethod
    async def gone(self) -> Probe:
        """See that nothing of it is left, and complete what only shows afterwards (a retry, a rejoin)."""

    def deeds(self) -> Mapping[str, object]:
        """What it did that the verdict goes by. The record of a fault that failed halfway has this as well."""
        return {}

    def bit(self, during: Probe, after: Probe) -> bool:
        """Whether the fault took effect, from both probes. Most faults show it while they last."""
        return during.effective

    async def _full_isrs(self) -> None:
        """Raises PreconditionMissing unless every replica is in its ISR. For faults that say ``needs_sync``."""
        if not await self.cluster.in_sync():
            raise PreconditionMissing("not every replica is in its ISR")

    async def _running(self) -> list[int]:
        """The brokers that are known to run."""
        lives = await asyncio.gather(*map(self.cluster.life, self.cluster.broker_ids))
        return [each for each, life in zip(self.cluster.broker_ids, lives, strict=True) if life is ProcessLife.RUNS]

    async def _runs(self, broker_id: int) -> bool:
        """Whether it is known to run: what is not known to run is no target, and owes no answer."""
        return await self.cluster.life(broker_id) is ProcessLife.RUNS

    async def _has_ended(self, broker_id: int) -> bool:
        """Whether it is known to have ended: nothing less is a proof that it was killed."""
        return await self.cluster.life(broker_id) is ProcessLife.ENDED

    async def _all_run(self) -> None:
        """Raises PreconditionMissing unless every broker runs."""
        if await self._running() != list(self.cluster.broker_ids):
            raise PreconditionMissing("not every broker runs")

    def _client_links(self, broker_id: int) -> list[str]:
        """The links of clients to this broker. Raises PreconditionMissing if it has none."""
        if links := links_of_clients(self.cluster.link_names, broker_id):
            return links
        raise PreconditionMissing(f"no client has a link to broker {broker_id}")

    async def _leads_to_one_that_runs(self, link: str) -> bool:
        """Whether the broker at the other end of this link runs; False for a link to ZooKeeper."""
        target = link.rpartition("-")[2]
        return target.startswith("b") and await self._runs(int(target[1:]))

    async def _leader(self) -> tuple[int, int]:
        partition = self._partition
        found = await self.cluster.leader(partition)
        if found is None:
            raise PreconditionMissing(f"partition {partition} has no leader")
        if not await self._runs(found[0]):
            raise PreconditionMissing(f"broker {found[0]} leads partition {partition} but does not run")
        return found

    @property
    def patience_ms(self) -> int:
        """How long the cluster may take to notice that a broker is gone: the session and the elections after it.

        ZooKeeper may be away at the same time."""
        return self.cluster.session_timeout_ms + 20_000

    @property
    def _partition(self) -> int:
        return int(self.injection.target.get("partition", 0))

    async def _moved_from(self, broker_id: int, timeout_ms: float) -> bool:
        """Whether another broker becomes leader of the chosen partition within the time."""

        async def moved() -> bool:
            found = await self.cluster.leader(self._partition)
            return found is not None and found[0] != broker_id

        return await until(moved, clock=self.clock, timeout_ms=timeout_ms)

    async def _rejoined(self, timeout_ms: float = 30_000) -> bool:
        """Whether every replica is in its ISR again within the time."""
        return await until(self.cluster.in_sync, clock=self.clock, timeout_ms=timeout_ms, interval_ms=100)
