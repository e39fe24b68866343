"""``disk-error``: calls of the disk of the broker that leads a partition fail with EIO; then it is well."""

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
    """Which calls fail is drawn, unless it is asked for."""

    name = "disk-error"
    summary = "let calls of the disk of the broker that leads a partition fail with EIO; restart it on a good disk"
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
