"""``lose-index``: a partition has no indexes when its former leader is restarted.

Its producer snapshots are removed, too, since they can be rebuilt like indexes. The ``.txnindex`` files stay: in
segments that are not read at a start, a missing file means that nothing was aborted, as in Kafka (docs/log.md
"Starting"). The broker is shut down cleanly first, unless ``kill`` is given. After a clean stop, the index of the
active segment is on disk, and the next start trusts the files that it finds.
"""

from __future__ import annotations

from collections.abc import Collection

from chaos.faults.accepted import truth
from chaos.faults.lost_files import LostFiles
from chaos.faults.rolling_restart import STOP_MS


class LoseIndex(LostFiles):
    """The broker rebuilds all these files from the batches."""

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
