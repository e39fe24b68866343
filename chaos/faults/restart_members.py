"""``restart-members``: each member of the group is closed and restarted, one after the other.

This is like a rolling deployment. A dynamic member leaves the group, which causes a rebalance, and another one joins. A
static member does not leave, and its successor with the same ``group.instance.id`` gets the same assignment.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.base import Probe
from chaos.faults.member_fault import MemberFault
from loadgen.group_plan import MemberName

_BACK_MS = 30_000
_ABSENCE_S = 0.1


class RestartMembers(MemberFault):
    """Bites when each place was taken again by a successor started for it."""

    name = "restart-members"
    summary = "close each member of the group and restart it, one after the other, static members included"
    #: Long enough for six members, each with a rebalance or two.
    duration_s = (6.0, 9.0)
    recovery_s = 4.0

    async def choose(self) -> str:
        self._start()
        self._rolled: list[dict[str, Any]] = []
        self._members = await self._at_work()
        return f"members {', '.join(map(str, sorted(self._members)))}, one after the other"

    async def inject(self) -> None:
        for name in sorted(self._members):
            self._rolled.append(await self._roll(name))

    async def bites(self) -> Probe:
        rolled = len(self._rolled) == len(self._members)
        return Probe(rolled and all(each["place_taken"] for each in self._rolled), {"steps": self._rolled})

    async def gone(self) -> Probe:
        there = await self._in_group() or {}
        return Probe(bool(there), {"others": len(there)})

    async def _roll(self, name: MemberName) -> dict[str, Any]:
        is_static = self._members[name].instance_id is not None
        number = await self._load.end_members("restart" if is_static else "leave", [str(name)], _ABSENCE_S)
        taken = await self._back({name: self._members[name]}, number, _BACK_MS)
        return {"member": str(name), "static": is_static, "place_taken": taken}
