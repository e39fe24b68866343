"""The base of faults that stop a broker and remove files from its disk. Does not own which files: each fault does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import ClassVar

from chaos.faults.base import Probe, Reach
from chaos.faults.kill_leader import KillLeader
from chaos.faults.machine import LostFile


class LostFiles(KillLeader):
    """Bites when non-empty files and the process are gone, and another broker leads the partition. It is over when the
    broker has rebuilt the files from what is left, and every replica is in sync."""

    reach: ClassVar[Reach] = "machines"
    needs_sync = True

    _lost: list[LostFile]

    async def choose(self) -> str:
        target = await super().choose()
        await self._full_isrs()
        self._lost = []
        return f"{target}, {self._what()}"

    @abstractmethod
    def _what(self) -> str:
        """Draw which files are lost. Returns what they are, in words, for the record."""

    @abstractmethod
    def _where(self) -> tuple[str, Collection[str]]:
        """The directory of these files, and the endings of their names."""

    async def _end(self) -> None:
        """Stop or kill the broker."""
        await super().inject()

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        await self._end()
        self._lost = await self.cluster.machine(self._broker_id).remove(*self._where())

    async def bites(self) -> Probe:
        seen = await super().bites()
        lost_bytes = sum(each.size_bytes for each in self._lost)
        more = {"lost_files": len(self._lost), "lost_bytes": lost_bytes}
        return Probe(seen.effective and lost_bytes > 0, {**seen.seen, **more})

    async def gone(self) -> Probe:
        seen = await super().gone()
        machine = self.cluster.machine(self._broker_id)
        loaded = await machine.loaded()
        expected = [each.name for each in self._lost if each.size_bytes > 0]
        made = await machine.present(expected)
        more = {"files_again": made, "verified_bytes": loaded.get("unflushed_bytes", 0)}
        return Probe(seen.effective, {**seen.seen, **more})
