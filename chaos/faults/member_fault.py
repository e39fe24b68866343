"""What the faults on single members of a group share: who is in the group, and who succeeded whom.

Owns that. A member that takes a place after an order names it (``loadgen.group_plan.MemberName``), so the coordinator
itself shows that the order was carried out. A coordinator keeps the first ``client.id`` of a static member, as Kafka's
does (KIP-345): there, a new member id shows the succession.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.base import PreconditionMissing, until
from chaos.faults.breakable import SeenMember
from chaos.faults.load_fault import LoadFault
from loadgen.group_plan import GROUP, MemberName
from verifier.evidence.how_many import how_many

_LOOK_MS = 100.0


class MemberFault(LoadFault):
    """A fault on members, one by one. ``_returned`` has each place that was seen, with the newest order it told;
    ``_ids`` the newest member id of each static one.
    """

    needs_load = "members"

    async def heal(self) -> None:
        """Nothing to undo: the place of a member that crashed or was closed is taken again anyway."""

    def _start(self) -> None:
        self._returned: dict[tuple[str, int], int] = {}
        self._ids: dict[str, str] = {}

    async def _at_work(self) -> dict[MemberName, SeenMember]:
        """The newest of each place in the group. Raises PreconditionMissing if there are fewer than two, or not ours.

        One that crashed a short time ago may still be in it.
        """
        newest = {
            (name.process, name.place): (name, each) for name, each in sorted((await self._in_group() or {}).items())
        }
        found = dict(newest.values())
        if len(found) < 2 or not self._load.processes("members"):
            raise PreconditionMissing(f"the group has {how_many(len(found), 'member')}")
        return found

    async def _in_group(self) -> dict[MemberName, SeenMember] | None:
        """The members in the group now; None while no one can tell."""
        known = await self.cluster.members(GROUP)
        if known is None:
            return None
        named = ((MemberName.parse(each.client_id), each) for each in known)
        found = {name: each for name, each in named if name is not None}
        for name in found:
            place = name.process, name.place
            self._returned[place] = max(name.order, self._returned.get(place, 0))
        self._ids |= {each.instance_id: each.member_id for each in found.values() if each.instance_id is not None}
        return found

    async def _back(self, members: Mapping[MemberName, SeenMember], number: int, timeout_ms: float) -> bool:
        """Whether all of these places were seen taken again after that order, within the time."""

        async def all_back() -> bool:
            await self._in_group()
            return all(self._is_back(name, member, number) for name, member in members.items())

        return await until(all_back, clock=self.clock, timeout_ms=timeout_ms, interval_ms=_LOOK_MS)

    def _is_back(self, name: MemberName, member: SeenMember, number: int) -> bool:
        if member.instance_id is not None and self._ids.get(member.instance_id, member.member_id) != member.member_id:
            return True
        return self._returned.get((name.process, name.place), 0) >= number
