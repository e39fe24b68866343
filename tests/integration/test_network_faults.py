"""Faults of the network and of single frames in a real cluster under load: each bites by its magnitude, nothing of it
is left, and nothing acknowledged is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.broken_cluster import Saw, Scene, Wanted, break_in_turn, nothing_is_lost
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(400)]


def _parted(links: int, elsewhere: int, stopped: str) -> Saw:
    """So many links were cut, each of which lost a ping that was answered before and again, and some were whole."""

    def saw(during: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        pings = during["pings_before"], during["pings_lost"], after["pings_again"]
        return pings == (links,) * 3 and during["pings_elsewhere"] == elsewhere and during[stopped] >= 14 * links

    return saw


def _late(during: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return 2 * during["late_ms"] >= during["expected_ms"] > 2 * after["still_late_ms"]


def _ended(during: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return during["frames_hit"] > 0 < during["closed_connections"] and after["connects_again"]


PARTED: tuple[Wanted, ...] = (
    Wanted("halves", {"lossless": True}, _parted(4, 2, "held_bytes")),
    Wanted("bridge", {"lossless": False}, _parted(2, 4, "dropped_bytes")),
    Wanted("ring", {"lossless": True}, _parted(3, 3, "held_bytes")),
    Wanted("leader-with-clients", {"lossless": True}, _parted(4, 2, "held_bytes")),
    Wanted("leader-with-followers", {"lossless": False}, _parted(2, 2, "dropped_bytes")),
    Wanted(
        "zookeeper-from-one",
        {"lossless": True},
        lambda during, after: during["counted_dead"] and during["held_bytes"] > 0 < after["sessions_expired"],
    ),
)
SLOWED: tuple[Wanted, ...] = (
    Wanted(
        "jitter",
        {"latency_ms": 150, "jitter_ms": 120},
        lambda during, after: _late(during, after) and during["spread_ms"] >= 60,
    ),
    Wanted("bandwidth", {"rate_kb": 50}, _late),
    Wanted("slicer", {"slice_bytes": 256, "delay_us": 6_000}, _late),
    Wanted("slow-close", {"delay_ms": 800}, _late),
    Wanted(
        "refuse",
        {},
        lambda during, after: during["refused_connections"] == 6 and during["closed_connections"] > 0,
    ),
    Wanted(
        "flapping",
        {},
        lambda during, after: during["refused_connections"] >= 3 <= during["times_up"] and after["connects_again"],
    ),
)
FRAMES: tuple[Wanted, ...] = (
    Wanted(
        "delay-request",
        {"api": "Produce", "delay_ms": 700},
        lambda during, after: during["longest_ms"] >= 350 and during["frames_hit"] > 0,
    ),
    Wanted(
        "duplicate-request",
        {"api": "Produce", "nth": 3, "count": 5},
        lambda during, after: during["frames"] >= 3 and during["dropped_bytes"] > 0,
    ),
    Wanted("duplicate-request", {"api": "Fetch"}, lambda during, after: during["dropped_bytes"] > 0),
    Wanted("cut-frame", {"api": "Produce", "direction": "request", "kept_bytes": 100}, _ended),
    Wanted("cut-frame", {"api": "Fetch", "direction": "response", "kept_bytes": 7}, _ended),
    Wanted("close-on", {"api": "Produce", "direction": "request"}, _ended),
    Wanted("close-on", {"api": "Produce", "direction": "response"}, _ended),
)


@pytest.mark.parametrize("wanted", [PARTED, SLOWED, FRAMES], ids=["parted", "slowed", "frames"])
def test_the_network_is_broken_and_nothing_is_lost(wanted: Sequence[Wanted], tmp_path: Path) -> None:
    """All of a group in one cluster, one after the other; in the end every link is clear."""
    require("java")

    async def in_the_end(scene: Scene) -> None:
        assert all(state.clear for state in (await asyncio.to_thread(scene.deployment.links.all)).values())
        await nothing_is_lost(scene)

    break_in_turn(tmp_path, wanted, in_the_end, topic={"min.insync.replicas": "2"})
