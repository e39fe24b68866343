"""The base class of faults, which defines the steps of one injection. Knows no particular fault.

A fault chooses its target, is injected and probed (did it bite?), lasts for its duration, is healed and probed again
(is it gone?). Does not own when these steps happen or how they are recorded: the conductor drives them, and waits for
the duration itself.
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

#: What a fault needs access to (docs/target.md): the load and its links (``clients``), the processes of brokers, or
#: something that is accessible only in a cluster that gapless starts.
Reach = Literal[
    "clients", "processes", "other-links", "zookeeper", "machines", "journals", "topics", "clean-stop", "data"
]


class PreconditionMissing(Exception):
    """There is nothing to break now (no leader, the target is down). The conductor tries again, then skips it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of a probe: whether it saw what it looked for (``effective``), and the figures that show it."""

    effective: bool
    seen: Mapping[str, Any] = field(default_factory=dict)


async def until(
    condition: Callable[[], Awaitable[bool]], *, clock: Clock, timeout_ms: float, interval_ms: float = 50.0
) -> bool:
    """Poll until ``condition`` is true or ``timeout_ms`` is over; returns whether it became true.

    It polls because conditions are about other processes, which signal nothing.
    """
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
    #: For the generator: bounds of the duration, and how long the cluster needs to recover, in seconds.
    duration_s: ClassVar[tuple[float, float]] = (2.5, 4.0)
    recovery_s: ClassVar[float] = 3.0
    #: What the fault takes away, so that the generator overlaps only faults that leave something to observe.
    hits: ClassVar[Hits] = "broker"
    #: Whether a broker comes back without data that it had acknowledged.
    loses_data: ClassVar[bool] = False
    #: Whether it waits until every replica is in its ISR.
    needs_sync: ClassVar[bool] = False
    #: What the target of an injection may name, whether its ``link`` may be ``followers``, and its parameters.
    targets: ClassVar[tuple[str, ...]] = ("partition",)
    takes_followers: ClassVar[bool] = False
    accepts: ClassVar[tuple[Rule, ...]] = ()
    #: With fewer of these it can never bite, because nothing else can notice the fault or take over.
    least_brokers: ClassVar[int] = 1
    least_replicas: ClassVar[int] = 1
    #: Whether it hits the links of clients, unless its target names another link.
    hits_client_links: ClassVar[bool] = False
    #: The kind of coordinator that the load must use; otherwise there is nothing to hit.
    needs_coordinator: ClassVar[CoordinatorOf | None] = None
    #: The part of the run's own load that it hits.
    needs_load: ClassVar[LoadPart | None] = None
    #: The part of the load of which it kills a process for good, so that there must be two processes of it.
    kills_load: ClassVar[LoadPart | None] = None
    #: Whether a second injection in the same run would find nothing to break.
    once: ClassVar[bool] = False
    #: Whether it acts on Kafka frames, which only gapless's own proxy supports.
    acts_on_frames: ClassVar[bool] = False
    #: Whether its effect shows only in counters of gapless's own proxy or of gapless's own brokers.
    needs_counters: ClassVar[bool] = False
    #: Whether it delivers batches twice, which brokers detect only with idempotence.
    needs_idempotence: ClassVar[bool] = False
    #: Whether it breaks the disk or the clock of a broker through the broker's fault port.
    needs_fault_port: ClassVar[bool] = False
    reach: ClassVar[Reach]
    #: The only operating system on which it works (``sys.platform``); empty if it works on all.
    system: ClassVar[str] = ""
    #: Whether it must be requested by its name, because no set of faults and no swarm includes it.
    by_name_alone: ClassVar[bool] = False
    #: Whether logs must have closed segments, which they soon have if segments are small.
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
        """The default duration as a manual fault, given the brokers' ZooKeeper session timeout."""
        return sum(cls.duration_s) / 2

    @classmethod
    def missed(cls, seen: Mapping[str, Any]) -> str:
        """Why the fault did not bite, for the user. ``seen`` has the figures of its first probe."""
        return str(seen.get("error", "the probe saw no effect"))

    @classmethod
    def needs_of_workload(cls) -> str | None:
        """What a workload must have for this fault, in words; None if it works with any workload."""
        if cls.needs_coordinator is not None:
            return f"{cls.needs_coordinator}s"
        return None if cls.needs_load is None else WORDS_OF_PARTS[cls.needs_load]

    @abstractmethod
    async def choose(self) -> str:
        """Choose the target; returns its description for the record. Raises PreconditionMissing."""

    @abstractmethod
    async def inject(self) -> None:
        """Break it."""

    @abstractmethod
    async def bites(self) -> Probe:
        """The first probe: whether the fault bites. Waits for the effect for a limited time."""

    @abstractmethod
    async def heal(self) -> None:
        """Undo it. Called once, even if ``inject`` failed halfway, so there may be nothing to undo."""

    @abstractmethod
    async def gone(self) -> Probe:
        """The second probe: whether nothing of the fault is left. Also sees what shows only now (a retry, a rejoin)."""

    def deeds(self) -> Mapping[str, object]:
        """What the fault did that the verdict depends on. Also recorded if the fault fails halfway."""
        return {}

    def bit(self, during: Probe, after: Probe) -> bool:
        """Whether the fault took effect, according to both probes. For most faults, the first one decides."""
        return during.effective

    async def _full_isrs(self) -> None:
        """Raises PreconditionMissing unless every replica is in its ISR. For faults with ``needs_sync``."""
        if not await self.cluster.in_sync():
            raise PreconditionMissing("not every replica is in its ISR")

    async def _running(self) -> list[int]:
        """The brokers that are known to run."""
        lives = await asyncio.gather(*map(self.cluster.life, self.cluster.broker_ids))
        return [each for each, life in zip(self.cluster.broker_ids, lives, strict=True) if life is ProcessLife.RUNS]

    async def _runs(self, broker_id: int) -> bool:
        """Whether the broker is known to run. Otherwise it is not a target, and is not expected to answer."""
        return await self.cluster.life(broker_id) is ProcessLife.RUNS

    async def _has_ended(self, broker_id: int) -> bool:
        """Whether the broker's process is known to have ended. Nothing else proves that it was killed."""
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
        """How long the cluster may take to notice that a broker is gone, in ms: the session, then elections.

        ZooKeeper may be unavailable at the same time.
        """
        return self.cluster.session_timeout_ms + 20_000

    @property
    def _partition(self) -> int:
        return int(self.injection.target.get("partition", 0))

    async def _moved_from(self, broker_id: int, timeout_ms: float) -> bool:
        """Whether another broker becomes leader of the chosen partition within ``timeout_ms``."""

        async def moved() -> bool:
            found = await self.cluster.leader(self._partition)
            return found is not None and found[0] != broker_id

        return await until(moved, clock=self.clock, timeout_ms=timeout_ms)

    async def _rejoined(self, timeout_ms: float = 30_000) -> bool:
        """Whether every replica is in its ISR again within ``timeout_ms``."""
        return await until(self.cluster.in_sync, clock=self.clock, timeout_ms=timeout_ms, interval_ms=100)
