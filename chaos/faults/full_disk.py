"""``full-disk``: the disk of a partition's leader is full; then there is space again."""

from __future__ import annotations

from collections.abc import Collection

from chaos.faults.failing_disk import FailingDisk


class FullDisk(FailingDisk):
    """Writes fail with ENOSPC, some of them halfway."""

    name = "full-disk"
    summary = "make writes to the disk of a partition's leader fail with ENOSPC; restart it with free space"

    @property
    def _error(self) -> str:
        return "ENOSPC"

    @property
    def _calls(self) -> Collection[str]:
        return ("append", "pwrite")
