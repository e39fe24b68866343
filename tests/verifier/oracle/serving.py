"""The check of serving once more, slow and obvious: of a whole run, for a partition that takes no writes has no log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.verifier.oracle.model import Anomaly
from verifier.evidence.run_model import RunModel


def stalled(run: RunModel, rows: list[dict[str, Any]]) -> Iterator[Anomaly]:
    ends = {phase.name: phase.end_ns for phase in run.phases}
    healed, over = ends.get("heal"), ends.get("recovery")
    if healed is None or over is None or over - healed < run.settings.stalled_after_s * 1_000_000_000:
        return
    sends = [row for row in rows if row["f"] == "send"]
    for partition in sorted({row["partition"] for row in sends}):
        later = [row for row in sends if row["partition"] == partition and row["complete_ns"] > healed]
        if later and not any(row["type"] == "ok" for row in later):
            yield Anomaly("stalled", None, partition, None, None, None)
