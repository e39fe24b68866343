"""Faults by orders to a real cluster under load, of one session and of a broker's time: each bites by its magnitude,
leaves nothing, and nothing that was acknowledged is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.broken_cluster import Scene, Wanted, break_in_turn, nothing_is_lost
from tests.integration.test_full_disk import PARTITIONS, TOPIC
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(500)]

#: What a new replica must have copied: the load has written more.
COPIED_BYTES = 10_000
#: With as many replicas as brokers. Each with its parameters, and what its probes must have seen.
ORDERED: tuple[Wanted, ...] = (
    Wanted("elect-preferred", {}, lambda during, after: during["elections"] == 1 and after["elections"] == 2),
    Wanted("create-delete-topic", {"topics": 2}, lambda during, after: during["replica_directories"] == 18),
    Wanted(
        "add-partitions",
        {"added": 3},
        lambda during, after: during["records_read"] == 3 and during["stored_bytes"] > 300,
    ),
    Wanted("alter-config", {"key": "segment.ms"}, lambda during, after: during["closed_segments"] >= 2),
    Wanted("alter-config", {"key": "max.message.bytes"}, lambda during, after: after["accepted"]),
    Wanted("reassign-partitions", {"removes": "leader"}, lambda during, after: after["copied_bytes"] > COPIED_BYTES),
    Wanted("reassign-partitions", {"removes": "follower"}, lambda during, after: after["copied_bytes"] > COPIED_BYTES),
)
#: Of what one broker alone loses: its session, its time.
OF_ONE_BROKER: tuple[Wanted, ...] = (
    Wanted("expire-session", {}, lambda during, after: during["runs"] and after["sessions_expired"] == 1),
    Wanted("starve-cpu", {"percent": 80}, lambda during, after: during["taken_percent"] >= 40 and not after["stopped"]),
)
#: With a broker that has no replica.
MOVED: tuple[Wanted, ...] = (
    Wanted(
        "reassign-partitions",
        {},
        lambda during, after: min(during["copied_bytes"], after["copied_bytes"]) > COPIED_BYTES,
    ),
)


@pytest.mark.parametrize(
    ("brokers", "faults"), [(3, ORDERED), (3, OF_ONE_BROKER), (4, MOVED)], ids=["orders", "one", "moves"]
)
def test_orders_under_load_take_effect_and_nothing_is_lost(
    brokers: int, faults: tuple[Wanted, ...], tmp_path: Path
) -> None:
    """All in one cluster, one after the other. In the end the topic has the settings and the disks the replicas that
    they had before, and no other topic is there."""
    require("java")

    async def as_before(scene: Scene) -> None:
        assert await scene.cluster.orders.overrides(TOPIC) == {"min.insync.replicas": "2"}
        admin = scene.observer.admin(30_000)
        assert [*(await admin.metadata()).topics] == [TOPIC]
        await admin.close()
        # At the very end: a reader has the coordinators' topic made.
        await nothing_is_lost(scene)

    break_in_turn(tmp_path, faults, as_before, brokers=brokers, topic={"min.insync.replicas": "2"})


def test_an_unclean_election_loses_what_its_leader_lacks_and_nothing_else(tmp_path: Path) -> None:
    """The partition of the order has gaps among what was acknowledged, and nothing that was never written; every other
    partition has all of it."""
    require("java")
    lost: list[int] = []

    async def in_the_end(scene: Scene) -> None:
        for partition in range(PARTITIONS):
            acknowledged = set(scene.writer.acknowledged[partition])
            missing = acknowledged - set(await scene.numbers(partition))
            if partition == 0:
                lost.extend(missing)
            else:
                assert not missing, (partition, sorted(missing)[:10])

    ordered = Wanted(
        "elect-unclean",
        {},
        lambda during, after: during["elections"] == 1 and during["leaderless"] and after["truncations"] > 0,
    )
    break_in_turn(tmp_path, (ordered,), in_the_end, topic={"min.insync.replicas": "2"}, is_idempotent=False)
    assert lost
