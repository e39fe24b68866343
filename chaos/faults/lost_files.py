"""What faults share that take files from the disk of a broker that is down. Which files is each fault's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from chaos.faults.base import PreconditionMissing, Probe
from chaos.faults.insides import LostFile
from chaos.faults.kill_leader import KillLeader


class LostFiles(KillLeader):
    """Bites when files are gone that held something, with the process, and another broker leads the partition. It is
    over when the broker has them again, made of what is left, and every replica is in sync."""

    needs_sync = True

    _lost: list[LostFile]

    async def choose(self) -> str:
        target = await super().choose()
        if not await self.cluster.in_sync():
            raise PreconditionMissing("not every replica is in its ISR")
        self._lost = []
        return f"{target}, {self._what()}"

    @abstractmethod
    def _what(self) -> str:
        """Draw which files are lost; their name for the record."""

    @abstractmethod
    def _where(self) -> tuple[str, Collection[str]]:
        """The directory of these files, and how their names end."""

    async def _end(self) -> None:
        """End the broker."""
        await super().inject()

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        await self._end()
        self._lost = await self.cluster.insides(self._broker_id).remove(*self._where())

    async def bites(self) -> Probe:
        seen = await super().bites()
        lost_bytes = sum(each.size_bytes for each in self._lost)
        more = {"lost_files": len(self._lost), "lost_bytes": lost_bytes}
        return Probe(seen.effective and lost_bytes > 0, {**seen.seen, **more})

    async def gone(self) -> Probe:
        seen = await super().gone()
        insides = self.cluster.insides(self._broker_id)
        loaded = await insides.loaded()
        expected = [each.name for each in self._lost if each.size_bytes > 0]
        made = await insides.present(expected)
        more = {"files_again": made, "verified_bytes": loaded.get("unflushed_bytes", 0)}
        return Probe(seen.effective, {**seen.seen, **more})
