"""Which replicas' files are read, and what the run noted of their brokers' ends. Owns the search; reads none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from verifier.bounds import expired_ms
from verifier.closing.wall_clock import STEADY, ClockShift
from verifier.evidence.run_model import RunModel
from verifier.files.replica import ReplicaDirectory
from verifier.narrowed import is_foreign
from verifier.segments.rows import SegmentFile


def replica_directories(
    model: RunModel, segments: Iterable[SegmentFile], shift: ClockShift = STEADY
) -> list[ReplicaDirectory]:
    """The directories that these segments lie in, each once, in their order. ``shift`` is of the run's wall clock."""
    if is_foreign(model):
        return []  # its brokers ran on
    finals = {(final.topic, final.partition): final for final in model.final}
    # a broker that was restarted is there several times: its last process is the one that left the files
    exits = {child.name: child.exit_code for child in model.children}
    expired = expired_ms(model, shift)
    found: dict[Path, ReplicaDirectory] = {}
    for segment in segments:
        path = Path(segment.path).parent
        if path in found:
            continue
        final = finals.get((segment.topic, segment.partition))
        leads = final is not None and final.status == "ok" and final.leader == segment.broker
        found[path] = ReplicaDirectory(
            segment.run,
            segment.broker,
            segment.topic,
            segment.partition,
            str(path),
            ended_in_order=exits.get(f"broker-{segment.broker}") == 0,
            high_watermark=final.high_watermark if final is not None and leads else -1,
            log_start_offset=final.log_start_offset if final is not None and leads else -1,
            expired_ms=expired,
        )
    return list(found.values())
