"""``crash-members``: half of the members of the group die at once, and their places stay empty for a while.

A storm: the group notices when several sessions expire at the same time, reassigns most partitions, and does so again
when all members come back together.
"""

from __future__ import annotations

from chaos.faults.base import Probe, until
from chaos.faults.member_fault import MemberFault

#: Longer than any session of a member, and the turn in which it crashes.
_REMOVED_MS = 20_000
#: Long, because a crash inside a transaction waits for records, and successors join with the next rebalance.
_BACK_MS = 40_000
_LOOK_MS = 100.0


class CrashMembers(MemberFault):
    """Bites when none of the crashed members is in the group anymore, while others are."""

    name = "crash-members"
    summary = "half of the members of the group crash at once; their places stay empty for a while"
    #: Longer than the session of the load's members, plus a rebalance.
    duration_s = (7.0, 9.0)
    recovery_s = 4.0

    async def choose(self) -> str:
        self._start()
        found = await self._at_work()
        drawn = self.random.sample(sorted(found), len(found) // 2)
        self._crashing = {name: found[name] for name in drawn}
        return f"members {', '.join(map(str, sorted(drawn)))} of {len(found)}"

    async def inject(self) -> None:
        names = sorted(map(str, self._crashing))
        self._number = await self._load.end_members("crash", names, self.injection.duration_s)

    async def bites(self) -> Probe:
        crashed = {each.member_id for each in self._crashing.values()}
        gone: set[str] = set()
        others = 0

        async def all_gone() -> bool:
            nonlocal others
            found = await self._in_group()
            if found is not None:
                there = {each.member_id for each in found.values()}
                gone.update(crashed - there)
                others = len(there - crashed)
            return gone == crashed and others > 0

        timeout_ms = _REMOVED_MS + self.patience_ms
        dead = await until(all_gone, clock=self.clock, timeout_ms=timeout_ms, interval_ms=_LOOK_MS)
        return Probe(dead, {"crashed": len(crashed), "removed": len(gone), "others": others})

    async def gone(self) -> Probe:
        back = await self._back(self._crashing, self._number, _BACK_MS)
        return Probe(back, {"places_taken": back})

    def bit(self, during: Probe, after: Probe) -> bool:
        """Both probes must succeed: only successors show that members crashed by this order, not as planned anyway."""
        return during.effective and after.effective
