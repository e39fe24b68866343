"""``lose-index``: a partition has no indexes when its former leader is restarted.

Nor any producer snapshots, which can be rebuilt just as indexes can. The ``.txnindex`` stays: in segments that a start
does not read, a missing one means that nothing was aborted, as in Kafka (docs/log.md "Starting"). The broker is shut
down cleanly first, unless it is to be killed: only then is the index of the active segment on disk, and a start trusts
what it finds.
"""

from __future__ import annotations

from collections.abc import Collection

from chaos.faults.accepted import truth
from chaos.faults.lost_files import LostFiles
from chaos.faults.rolling_restart import STOP_MS


class LoseIndex(LostFiles):
    """All of them are rebuilt from the batches."""

    name = "lose-index"
    summary = "stop a partition's leader and remove the partition's indexes and snapshots; restart it"
    duration_s = (4.0, 6.0)
    accepts = (truth("kill"),)

    def _what(self) -> str:
        return "its indexes"

    def _where(self) -> tuple[str, Collection[str]]:
        return f"{self.cluster.topic}-{self._partition}", (".index", ".timeindex", ".snapshot", ".producers")

    async def _end(self) -> None:
        if self.injection.parameters.get("kill") or not await self.cluster.stop(self._broker_id, STOP_MS):
            await super()._end()
