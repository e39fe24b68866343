"""``full-disk``: the disk of the broker that leads a chosen partition takes no more bytes; then there is room again."""

from __future__ import annotations

from collections.abc import Collection

from chaos.faults.failing_disk import FailingDisk


class FullDisk(FailingDisk):
    """Writes fail with ENOSPC, some of them after a part is done."""

    name = "full-disk"
    summary = "let writes fail for want of space on the disk of the broker that leads a partition; restart it with room"

    @property
    def _error(self) -> str:
        return "ENOSPC"

    @property
    def _calls(self) -> Collection[str]:
        return ("append", "pwrite")
