"""The base of faults on single members of a group: finds out who is in the group, and who succeeded whom.

A member that takes a place after an order has the order's number in its name (``loadgen.group_plan.MemberName``), so
the coordinator itself shows that the order was carried out. For a static member, the coordinator keeps the first
``client.id``, as in Kafka (KIP-345); there, a new member id shows the succession. Does not own what is done to members.
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
    """A fault on single members.

    ``_returned`` maps each place in the group to the newest order in its members' names. ``_ids`` maps the instance id
    of each static member to its newest member id.
    """

    needs_load = "members"

    async def heal(self) -> None:
        """Undo nothing: the load fills the place of a member that crashed or was closed anyway."""

    def _start(self) -> None:
        self._returned: dict[tuple[str, int], int] = {}
        self._ids: dict[str, str] = {}

    async def _at_work(self) -> dict[MemberName, SeenMember]:
        """The newest member of each place in the group. Members that crashed a short time ago may be included.

        Raises PreconditionMissing if there are fewer than two, or if they are not from this run's load.
        """
        newest = {
            (name.process, name.place): (name, each) for name, each in sorted((await self._in_group() or {}).items())
        }
        found = dict(newest.values())
        if len(found) < 2 or not self._load.processes("members"):
            raise PreconditionMissing(f"the group has {how_many(len(found), 'member')}")
        return found

    async def _in_group(self) -> dict[MemberName, SeenMember] | None:
        """The members that are in the group now; None if no broker reports the group."""
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
        """Whether all these places are taken again, after order ``number``, within ``timeout_ms``."""

        async def all_back() -> bool:
            await self._in_group()
            return all(self._is_back(name, member, number) for name, member in members.items())

        return await until(all_back, clock=self.clock, timeout_ms=timeout_ms, interval_ms=_LOOK_MS)

    def _is_back(self, name: MemberName, member: SeenMember, number: int) -> bool:
        if member.instance_id is not None and self._ids.get(member.instance_id, member.member_id) != member.member_id:
            return True
        return self._returned.get((name.process, name.place), 0) >= number
