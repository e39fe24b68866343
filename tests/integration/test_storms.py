"""Faults that kill several brokers or wipe one, in a real cluster under load: each bites by what its journals tell,
all brokers come back, and nothing acknowledged is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.reached import reached_by
from tests.integration.broken_cluster import Wanted, break_in_turn, nothing_is_lost
from tests.integration.test_full_disk import PARTITIONS
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(400)]

#: Each with its parameters, and what its probes must have seen while it lasted and afterwards.
STORMS = (
    Wanted("kill-majority", {}, lambda during, after: len(during["steps"]) == 2 and after["leader_epochs"] > 0),
    Wanted("double-failover", {"back": False, "tail": True}, lambda during, after: after["leader_epochs"] >= 2),
    Wanted("double-failover", {"back": True, "tail": True}, lambda during, after: after["isr_changes"] >= 2),
    Wanted("kill-and-wipe", {}, lambda during, after: during["lost_bytes"] > 10_000 < after["fetched_bytes"]),
    Wanted(
        "restart-storm", {"rounds": 3}, lambda during, after: len(during["steps"]) == 3 and after["isr_changes"] > 0
    ),
    Wanted("kill-all", {}, lambda during, after: len(during["steps"]) == 3 and after["leader_epochs"] >= PARTITIONS),
)


def test_brokers_die_together_and_nothing_is_lost(tmp_path: Path) -> None:
    """All of them in one cluster, under load, one after the other; each is over before the next one begins."""
    require("java")
    run = break_in_turn(tmp_path, STORMS, nothing_is_lost, topic={"min.insync.replicas": "2"})
    came = reached_by(run)
    assert {*came.isr_sizes} == {"1", "2", "3"} and min(came.leader_epochs.values()) > 5, came
