"""``disk-error``: calls to the disk of a partition's leader fail with EIO; then the disk is replaced by a good one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from chaos.faults.accepted import one_of
from chaos.faults.failing_disk import FailingDisk
from cluster.seams.disk_fault import CALLS

#: What can fail together: writes, syncs (of files and of directories), or everything.
_FAILING: Mapping[str, tuple[str, ...]] = {
    "writes": ("append", "pwrite", "truncate"),
    "syncs": ("fsync", "sync_directory"),
    "all": CALLS,
}


class DiskError(FailingDisk):
    """Which calls fail is drawn unless it is given."""

    name = "disk-error"
    summary = "make calls to the disk of a partition's leader fail with EIO; restart it on a good disk"
    accepts = (one_of("calls", *_FAILING),)

    async def choose(self) -> str:
        target = await super().choose()
        self._kind = self.injection.parameters.get("calls") or self.random.choice(sorted(_FAILING))
        return f"{target}, {self._kind}"

    @property
    def _error(self) -> str:
        return "EIO"

    @property
    def _calls(self) -> Collection[str]:
        return _FAILING[self._kind]
