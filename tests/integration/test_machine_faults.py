"""Faults of a broker's machine in a real cluster: each bites by its magnitude, leaves nothing, and nothing acknowledged
is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.seams.breakable_disk import RECORD
from cluster.seams.power_loss import POWER_LOSS
from tests.integration.broken_cluster import Scene, Wanted, break_in_turn
from tests.integration.test_full_disk import PARTITIONS
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(400)]

#: Each with what its probe must have seen while it lasted, and afterwards.
MACHINES = (
    Wanted("power-loss", {}, lambda during, after: during["lost_bytes"] > 0 < after["verified_bytes"]),
    Wanted("truncate-tail", {}, lambda during, after: during["lost_bytes"] > 0 < after["verified_bytes"]),
    Wanted("full-disk", {}, lambda during, after: during["failed_calls"] > 0 and during["disk_error"] == "ENOSPC"),
    Wanted("disk-error", {"calls": "all"}, lambda during, after: during["failed_calls"] > 0 and after["disk_well"]),
    Wanted(
        "slow-disk",
        {"delay_ms": 600},
        lambda during, after: during["waited_for_disk_ms"] >= 600 > after["last_sync_ms"] and after["disk_well"],
    ),
    Wanted(
        "lose-checkpoint",
        {"checkpoint": "replication-offset-checkpoint"},
        lambda during, after: during["lost_bytes"] > 0 and after["isr_full"],
    ),
    Wanted("lose-index", {}, lambda during, after: during["lost_files"] > 2 and after["files_again"] > 0),
    Wanted("bit-flip", {}, lambda during, after: (during["bad_batches"], after["bad_batches"]) == (1, 0)),
    Wanted(
        "clock-jump",
        {"ahead_ms": -90_000},
        lambda during, after: during["clock_ahead_ms"] < -80_000 and abs(after["clock_ahead_ms"]) < 250,
    ),
    Wanted(
        "clock-drift",
        {"ppm": 400_000},
        lambda during, after: during["clock_ahead_ms"] > 400 and abs(after["clock_ahead_ms"]) < 250,
    ),
    Wanted(
        "memory-pressure",
        {"spare_kb": 64},
        lambda during, after: during["halts"] == 1 and not after["limited"] and after["leader_epochs"] > 0,
    ),
)


def test_machines_are_broken_one_after_the_other_and_nothing_is_lost(tmp_path: Path) -> None:
    """All of them in one cluster, under load. In the end no switch is on, and no loss is left to be taken."""
    require("java")

    async def in_the_end(scene: Scene) -> None:
        failed = scene.writer.failed
        for partition in range(PARTITIONS):
            # a broker whose disk fails refuses what waits for its followers, which may have it all the same
            certain = [value for value in await scene.numbers(partition) if value not in failed[partition]]
            assert certain == scene.writer.acknowledged[partition], failed[partition]
            assert all("storage error" in error for error in failed[partition].values()), failed
        states = [await scene.cluster.machine(broker_id).see() for broker_id in scene.deployment.broker_ids]
        assert all(state is not None and state.is_well and abs(state.ahead_ms) < 250 for state in states), states

    break_in_turn(tmp_path, MACHINES, in_the_end, topic={"segment.bytes": "65536"}, is_breakable=True)
    assert not list(tmp_path.glob(f"nodes/*/{POWER_LOSS}"))
    assert any(path.stat().st_size for path in tmp_path.glob(f"nodes/*/{RECORD}"))
