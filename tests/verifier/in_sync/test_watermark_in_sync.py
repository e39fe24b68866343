"""Watermarks that move with too few in sync: what is planted, and when it is known what may have been told before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.verifier.in_sync.test_too_few import NOTED, PLACE, fault, line, looks
from tests.verifier.oracle import in_sync as oracle
from tests.verifier.oracle.reading import read
from tests.verifier.planted import planted_story
from tests.verifier.planted.told_in_sync import PLANTED
from verifier import explain
from verifier.checks.watermark_under_min_isr import ToldWatermark, watermark_under_min_isr
from verifier.in_sync.in_sync_checks import of_in_sync
from verifier.in_sync.too_few import alone, noted_times
from verifier.witness.witness import Witness


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    """Without Spark: the check, its twin, and the sentence for people."""
    story = planted_story(name)
    directory = story.write(tmp_path / "run")
    found = of_in_sync(directory, story.model())
    wanted = PLANTED[name].expected.get(("watermark-under-min-isr", None))
    assert [(each.check, each.count, each.offset) for each in found] == (
        [] if wanted is None else [("watermark-under-min-isr", wanted["count"], wanted["offset"])]
    )
    run, rows = read(directory)
    twins = list(oracle.find_all(directory, run, rows))
    assert [each.offset for each in twins] == [each.offset for each in found for _ in range(each.count)]
    for each in found:
        told = explain.sentence(each)
        assert "session 1 of reader-1 was told of a high watermark 1" in told
        assert f"no more than what is below {each.offset} is committed" in told


def test_with_other_acks_it_is_asked_too(tmp_path: Path) -> None:
    """Whoever reads is handed what may vanish, however it was written."""
    story = planted_story("a watermark that moves, and its leader is alone")
    story.settings = replace(story.settings, acks="1", idempotence=False)
    (found,) = of_in_sync(story.write(tmp_path / "run"), story.model())
    assert (found.check, found.count) == ("watermark-under-min-isr", 2)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"high_watermark": 40, "epoch_start_offset": 30}, 40),
        ({"high_watermark": 20, "epoch_start_offset": 30}, 30),
        ({"high_watermark": 40}, None),
        ({}, None),
    ],
)
def test_what_may_have_been_told_before(more: dict[str, object], told: int | None) -> None:
    """The leader's own watermark, and what its log had when its epoch began; a line that lacks one says nothing."""
    (found,) = noted_times(1, [line("under-min-isr", 4) | more])
    assert found.told == told


@pytest.mark.parametrize(
    ("first", "keeps", "lost", "is_known"),
    [
        (3, True, "pause", True),
        (3, False, "power-loss", True),
        (2, True, "pause", True),
        (2, False, "pause", False),
        (2, True, "power-loss", False),
        (2, True, "bit-flip", False),
    ],
)
def test_a_later_epoch_needs_that_nothing_committed_is_lost(first: int, keeps: bool, lost: str, is_known: bool) -> None:
    """A former leader, or this one in a former life, told of nothing above the start of an epoch; else no one knows."""
    epochs = [(epoch, 2.0 * (epoch - first), 1) for epoch in range(first, 4)]
    seen = Witness(looks(*epochs).sightings, (fault(1, 2, lost),))
    (found,) = alone([NOTED._replace(told=40)], [], seen, keeps=keeps)
    assert found.told == (40 if is_known else None)


@pytest.mark.parametrize(
    ("place", "high_watermark", "told_ns", "is_found"),
    [
        (PLACE, 41, 101, True),
        (PLACE, 41, 199, True),
        (PLACE, 40, 150, False),
        (PLACE, -1, 150, False),
        (PLACE, 41, 100, False),
        (PLACE, 41, 200, False),
        (("t", 1), 41, 150, False),
    ],
)
def test_what_touches_is_legal(place: tuple[str, int], high_watermark: int, told_ns: int, is_found: bool) -> None:
    """A poll that returned after the time began, and before it ended, with a watermark above what was told before."""
    time = NOTED._replace(start_ns=100, end_ns=200, told=40)
    told = [ToldWatermark(place, "reader-1", 1, high_watermark, told_ns)]
    assert [each.offset for each in watermark_under_min_isr([time], told)] == [40] * is_found
    assert not list(watermark_under_min_isr([time._replace(told=None)], told))
