"""``LoadUnderTest`` for faults: the load's child processes, the figures that they write, and the orders they read.

Signals go to whole processes, orders to single members (``loadgen.orders``). Does not decide what is broken
(``chaos.faults``) or start the load (``chaos.conductor.load``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from chaos.faults.breakable import LoadPart, MemberEnd, Process
from loadgen.group_plan import LifeEnd, MemberName
from loadgen.orders import MemberOrder, give_orders
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.series import SeriesPoint

_ENDS = {"crash": LifeEnd.CRASH, "leave": LifeEnd.LEAVE, "restart": LifeEnd.RESTART}


_PARTS: tuple[LoadPart, ...] = ("producers", "readers", "members")


class BreakableLoad:
    """``LoadUnderTest`` for the processes of a run.

    ``children`` returns the processes of a part of the load, by name. ``killed`` is called with the name of a process
    before it is killed.
    """

    def __init__(
        self,
        directory: RunDirectory,
        children: Callable[[LoadPart], Mapping[str, Process]],
        killed: Callable[[str], object] = lambda name: None,
    ) -> None:
        self._directory = directory
        self._children = children
        self._killed = killed
        self._numbers = itertools.count(1)

    def __repr__(self) -> str:
        return f"BreakableLoad({', '.join(name for part in _PARTS for name in self.processes(part))})"

    def processes(self, part: LoadPart) -> tuple[str, ...]:
        return tuple(name for name, child in self._children(part).items() if child.is_running())

    def process(self, name: str) -> Process:
        return next(found[name] for part in _PARTS if name in (found := self._children(part)))

    async def acknowledged(self, name: str) -> int:
        point = await self._point(name)
        return 0 if point is None else point.total_acked

    async def last_acked_ns(self, name: str, partition: int) -> int:
        point = await self._point(name)
        return 0 if point is None else point.last_acked_ns.get(str(partition), 0)

    async def handed(self, name: str) -> int:
        point = await self._point(name)
        return 0 if point is None else point.total_read

    async def _point(self, name: str) -> SeriesPoint | None:
        try:
            return SeriesPoint.from_json(await asyncio.to_thread(read_json, self._directory.status_json(name)))
        except (OSError, ValueError, TypeError):
            return None

    async def kill(self, name: str) -> None:
        self._killed(name)
        await asyncio.to_thread(self.process(name).kill)

    async def end_members(self, end: MemberEnd, names: Sequence[str], absence_s: float) -> int:
        number = next(self._numbers)
        orders: dict[str, list[MemberOrder]] = defaultdict(list)
        for name in map(MemberName.parse, names):
            if name is not None:
                orders[name.process].append(MemberOrder(number, name.place, _ENDS[end], absence_s))
        for process, given in orders.items():
            await asyncio.to_thread(give_orders, self._directory.orders_jsonl(process), given)
        return number
