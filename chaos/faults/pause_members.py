"""``pause-members``: SIGSTOP a process of group members until the group has removed them; SIGCONT it.

All members with one client go silent at once, usually half of the group. They wake up as zombies: other members own
their partitions, and their commits and transactions belong to an old generation.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.base import PreconditionMissing, until
from chaos.faults.pause_load import PauseLoad
from loadgen.group_plan import GROUP, MemberName

#: Longer than any session of a member, and the delay of the rebalance after it.
_REMOVED_MS = 15_000
_REJOINED_MS = 30_000
_LOOK_MS = 100.0


class PauseMembers(PauseLoad):
    """Bites when the process is stopped, and none of its members is in the group anymore."""

    name = "pause-members"
    summary = "SIGSTOP a process of group members until their sessions expire; SIGCONT it"
    part = "members"
    needs_load = "members"
    #: Longer than the session of the load's members, plus a rebalance.
    duration_s = (8.0, 10.0)
    recovery_s = 4.0

    async def look_before(self) -> None:
        self._silent = await self._members() or frozenset()
        if not self._silent:
            raise PreconditionMissing(f"no member of {self._name} is in the group")

    async def given_up(self) -> dict[str, Any]:
        left = self._silent

        async def all_removed() -> bool:
            nonlocal left
            now = await self._members()
            left = left if now is None else self._silent & now
            return not left

        await until(all_removed, clock=self.clock, timeout_ms=_REMOVED_MS + self.patience_ms, interval_ms=_LOOK_MS)
        return {"removed": 0 if left else len(self._silent)}

    async def back(self) -> tuple[bool, dict[str, Any]]:
        async def some() -> bool:
            return bool(await self._members())

        rejoined = await until(some, clock=self.clock, timeout_ms=_REJOINED_MS, interval_ms=_LOOK_MS)
        return rejoined, {"rejoined": rejoined}

    async def _members(self) -> frozenset[str] | None:
        """The member ids of this process that are in the group; None if no broker reports the group."""
        known = await self.cluster.members(GROUP)
        if known is None:
            return None
        named = ((each.member_id, MemberName.parse(each.client_id)) for each in known)
        return frozenset(member_id for member_id, name in named if name is not None and name.process == self._name)
