"""What both faults of ZooKeeper look at: what became of sessions and of the controller. Injects nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from chaos.faults.base import ClusterUnderTest, until
from cluster.seams.clock import Clock

#: The event of a broker's journal that says that its session was over.
EXPIRED = "session-expired"
#: How long the brokers may take to learn that their sessions have expired, and to register again.
_LEARN_MS = 3_000
_BACK_MS = 15_000


@dataclass(frozen=True, slots=True)
class ZooKeeperProbe:
    """How things stood before."""

    expired: int
    controller: int | None

    @classmethod
    async def before(cls, cluster: ClusterUnderTest) -> Self:
        """Look before the fault."""
        return cls(await cluster.journaled(EXPIRED), await cluster.controller())

    async def serves_again(self, cluster: ClusterUnderTest, clock: Clock) -> bool:
        """Whether ZooKeeper serves, and every broker that runs is registered with it, within the time."""

        async def serves() -> bool:
            running = {broker_id for broker_id in cluster.broker_ids if cluster.process(broker_id).is_running()}
            return await cluster.zookeeper_answers(timeout_ms=500) and running <= await cluster.alive()

        return await until(serves, clock=clock, timeout_ms=_BACK_MS, interval_ms=100)

    async def after(self, cluster: ClusterUnderTest, clock: Clock, *, expect_expiry: bool) -> dict[str, Any]:
        """What became of sessions and controller; where they are expected to expire, brokers get time to learn it."""

        async def learned() -> bool:
            return await cluster.journaled(EXPIRED) > self.expired

        if expect_expiry:
            await until(learned, clock=clock, timeout_ms=_LEARN_MS, interval_ms=500)
        controller = await cluster.controller()
        return {
            "sessions_expired": await cluster.journaled(EXPIRED) - self.expired,
            "controller_changed": controller != self.controller,
        }
