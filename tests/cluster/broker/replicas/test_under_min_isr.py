"""The journal's lines on too few in sync: when there is news, and what is told."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from cluster.broker.replicas.under_min_isr import UNDER_MIN_ISR, UNDER_MIN_ISR_OVER, UnderMinIsr
from cluster.broker.rules import Rules
from cluster.defects import advance_alone
from cluster.defects.firings import Firings
from cluster.defects.one_is_enough import with_one
from cluster.protocol.errors import ErrorCode
from cluster.replication.leader import LeaderState
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.broker.scenes import TOPIC, client_of_leader, cut_followers
from tests.simulation.client import batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

#: The watermark before the change.
WATERMARK = 40


def leadership(*isr: int, epoch: int = 3, replicas: tuple[int, ...] = (1, 2, 3)) -> LeaderState:
    return LeaderState(
        broker_id=1,
        replicas=replicas,
        isr=isr,
        leader_epoch=epoch,
        partition_epoch=0,
        log_end_offset=30,
        high_watermark=0,
        min_insync_replicas=2,
        lag_time_max_ms=1000,
        now_ms=0,
        eligible=lambda _: True,
    )


def noting() -> tuple[UnderMinIsr, list[tuple[str, dict[str, Any]]]]:
    told: list[tuple[str, dict[str, Any]]] = []
    return UnderMinIsr(("t", 0), lambda *line: told.append(line)), told


def under(*isr: int, epoch: int = 3) -> tuple[str, dict[str, Any]]:
    place = {"topic": "t", "partition": 0}
    lack = {"leader_epoch": epoch, "isr": list(isr), "min_insync_replicas": 2}
    return UNDER_MIN_ISR, {**place, **lack, "high_watermark": WATERMARK, "epoch_start_offset": 30}


OVER = UNDER_MIN_ISR_OVER, {"topic": "t", "partition": 0}


def test_only_news_is_told() -> None:
    """A leader with enough tells nothing; one with too few tells it once for each epoch, and when it is over."""
    note, told = noting()
    for leader in (None, leadership(1, 2), leadership(1), leadership(1), leadership(1, epoch=4), leadership(1, 2)):
        note.look(leader, 2, WATERMARK)
    note.look(leadership(1), 2, WATERMARK)
    note.look(leadership(1), 2, WATERMARK + 1)
    assert told == [under(1), under(1, epoch=4), OVER, under(1)]


def test_who_leads_no_more_lacks_nothing() -> None:
    """That another one leads ends it."""
    note, told = noting()
    note.look(leadership(1), 2, WATERMARK)
    note.look(None, 2, WATERMARK)
    assert told == [under(1), OVER]


def test_what_the_topic_asks_for_counts() -> None:
    """Not more than there are replicas; and a new setting is news, though the ISR stays."""
    note, told = noting()
    note.look(leadership(1, replicas=(1,)), 2, WATERMARK)
    assert told == []
    for wanted in (1, 2, 1):
        note.look(leadership(1), wanted, WATERMARK)
    assert told == [under(1), OVER]


@pytest.mark.parametrize("is_planted", [False, True])
def test_it_says_when_the_isr_of_a_leader_was_too_small(is_planted: bool) -> None:
    """From when a write is refused until one is taken again; a defect that takes them all changes no line."""

    async def check() -> None:
        rules = Rules()
        if is_planted:
            noted = MemoryStorage()
            noted.makedirs("/d")
            rules = with_one("d", rules, Firings("/d", 1, noted, ManualClock()))
        properties = {"min.insync.replicas": "2", "replica.lag.time.max.ms": "1000"}
        async with MemoryCluster(3, properties, rules) as cluster:
            await cluster.create_topic(TOPIC)
            client, leader = await client_of_leader(cluster), cluster.leader(TOPIC)
            links = cut_followers(cluster)
            await cluster.until(lambda: cluster.isr(TOPIC) == {leader})
            await cluster.until(lambda: bool(lines(cluster, leader)))
            taken = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE][is_planted]
            assert (await client.produce(TOPIC, batch(b"a"))).error is taken
            assert [line["isr"] for line in lines(cluster, leader)] == [[leader]]
            for link in links:
                cluster.network.heal(*link)
            await cluster.until(lambda: len(cluster.isr(TOPIC)) == 3)
            assert (await client.produce(TOPIC, batch(b"b"))).error is ErrorCode.NONE
            under, over = lines(cluster, leader)
            assert (under["event"], over["event"]) == (UNDER_MIN_ISR, UNDER_MIN_ISR_OVER)
            assert (under["leader_epoch"], under["min_insync_replicas"]) == (0, 2)
            assert under["monotonic_ns"] < over["monotonic_ns"]
            assert not any(lines(cluster, other) for other in cluster.broker_ids if other != leader)

    run(check())


@pytest.mark.parametrize("is_planted", [False, True])
def test_the_watermark_that_is_noted_is_the_one_before_the_isr_shrank(is_planted: bool) -> None:
    """A correct leader does not move it with too few in sync; a defect that does moves away from what is noted."""

    async def check() -> None:
        rules = Rules()
        if is_planted:
            noted = MemoryStorage()
            noted.makedirs("/d")
            firings = Firings("/d", 1, noted, ManualClock())
            rules = advance_alone.plant(rules, 1.0, Random(1), firings)
        properties = {"min.insync.replicas": "2", "replica.lag.time.max.ms": "1000"}
        async with MemoryCluster(3, properties, rules) as cluster:
            await cluster.create_topic(TOPIC)
            client, leader = await client_of_leader(cluster), cluster.leader(TOPIC)
            assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NONE
            cut_followers(cluster)
            # it is appended, and no one else gets it
            assert (await client.produce(TOPIC, batch(b"b"), acks=1)).error is ErrorCode.NONE
            await cluster.until(lambda: bool(lines(cluster, leader)))
            (line,) = lines(cluster, leader)
            assert (line["high_watermark"], line["epoch_start_offset"]) == (1, 0)
            assert (await client.fetch(TOPIC, 0)).high_watermark == (2 if is_planted else 1)

    run(check())


def lines(cluster: MemoryCluster, broker_id: int) -> list[dict[str, Any]]:
    journal = cluster.storages[broker_id].read("/node/control.jsonl").decode().splitlines()
    events = (UNDER_MIN_ISR, UNDER_MIN_ISR_OVER)
    return [line for line in map(json.loads, journal) if line["event"] in events and line["topic"] == TOPIC]
