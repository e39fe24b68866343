"""``expire-session``: ZooKeeper ends the session of one broker, whose peers and clients still reach it.

The broker's link to ZooKeeper holds back everything, both ways, for longer than the session. ZooKeeper drops the
broker's registration, and a controller elects other leaders; the broker itself runs, serves, and does not know. When
the link is open again, it learns of the expiry and registers in a new session, which begins a new broker epoch.
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.base import Fault, PreconditionMissing, Probe, Reach, until
from chaos.faults.zookeeper_fault import EXPIRED

#: The event in a broker's journal for a registration, in any session.
REGISTERED = "registered"
_LEARN_MS = 30_000


class ExpireSession(Fault):
    """Bites when the others count the broker as dead while it answers, and, after the heal, its journal has the end of
    the session and the next registration."""

    name = "expire-session"
    summary = "hold one broker's link to ZooKeeper for longer than its session, which expires; others still reach it"
    reach: ClassVar[Reach] = "other-links"
    duration_s = (3.5, 5.0)
    recovery_s = 4.0
    least_brokers = 2

    _lossless = True

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._link = f"b{self._broker_id}-zk"
        if self._link not in self.cluster.link_names:
            raise PreconditionMissing(f"there is no link {self._link}")
        if self._broker_id not in await self.cluster.alive():
            raise PreconditionMissing(f"broker {self._broker_id} is not registered")
        return f"link {self._link}, of who leads {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        self._expired_before, self._registered_before = await self._journaled()
        self._began_ms = self.clock.monotonic_ms()
        await self.damage.cut([self._link], "both", lossless=self._lossless)

    async def bites(self) -> Probe:
        async def dropped() -> bool:
            alive = await self.cluster.alive()
            # an empty set means that no broker answered, not that this one is dead
            return bool(alive) and self._broker_id not in alive

        dead = await until(dropped, clock=self.clock, timeout_ms=self.patience_ms)
        after_ms = self.clock.monotonic_ms() - self._began_ms
        runs = await self.cluster.answers(self._broker_id, timeout_ms=2_000)
        moved = await self._moved_from(self._broker_id, 3_000)
        seen = {
            "link": self._link,
            "counted_dead": dead,
            "dead_after_ms": after_ms,
            "runs": runs,
            "leader_moved": moved,
        }
        return Probe(dead and runs, seen)

    async def heal(self) -> None:
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        expired = registered = 0

        async def is_back() -> bool:
            nonlocal expired, registered
            now = await self._journaled()
            expired, registered = now[0] - self._expired_before, now[1] - self._registered_before
            return expired > 0 and registered > 0 and self._broker_id in await self.cluster.alive()

        back = await until(is_back, clock=self.clock, timeout_ms=_LEARN_MS, interval_ms=200)
        rejoined = await self._rejoined()
        seen = {
            "link_clear": clear,
            "sessions_expired": expired,
            "registrations": registered,
            "isr_full": rejoined,
        }
        return Probe(clear and rejoined and (back or not expired), seen)

    def bit(self, during: Probe, after: Probe) -> bool:
        """Also requires the expiry in the broker's journal: a broker that counts as dead may only be disconnected."""
        return bool(during.effective and after.seen["sessions_expired"] and after.seen["registrations"])

    async def _journaled(self) -> tuple[int, int]:
        """How many ends of sessions and how many registrations this broker's journal has."""
        return (
            await self.cluster.journaled(EXPIRED, self._broker_id),
            await self.cluster.journaled(REGISTERED, self._broker_id),
        )
