"""The coordinators' topics, and what a group writes, are evidence: without them, nothing would be found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.stories import Story
from tests.support.transaction_bytes import state_log, state_value
from tests.verifier.planted import planted_story
from tests.verifier.test_verdict import closing_of
from verifier.completeness import coordinators
from verifier.evidence.run_model import RunModel

GROUP = "a group that hands over, and delivers three records twice"
BANK = "a bank whose transfers have both sides"
USED = "no broker has a log of it, and the run used it"


def doubts(run: RunModel, story: Story) -> list[str]:
    return [doubt.reason for doubt in coordinators.doubts(run, closing_of(story))]


def configured(story: Story, partitions: int, **workload: Any) -> RunModel:
    """A run with this many partitions in the coordinators' topics, and with these changes to its workload."""
    run = story.model()
    resolved = run.experiment["resolved"]
    names = ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")
    changed = {
        "broker": {**resolved["broker"], **dict.fromkeys(names, partitions)},
        "workload": {**resolved["workload"], **workload},
    }
    return replace(run, experiment={**run.experiment, "resolved": {**resolved, **changed}})


@pytest.mark.parametrize(
    ("name", "workload", "says"),
    [
        (BANK, {"kind": "bank"}, []),
        (GROUP, {}, [f"__consumer_offsets-0, __consumer_offsets-1: {USED}"]),
        (
            GROUP,
            {"members": {"transform": True}},
            [
                f"__transaction_state-0, __transaction_state-1, __consumer_offsets-0, __consumer_offsets-1, "
                f"gapless-output-0: {USED}"
            ],
        ),
        ("a pipeline", {}, [f"__consumer_offsets-0, __consumer_offsets-1: {USED}"]),
        (
            "a pipeline",
            {"members": {"transform": True}},
            [f"__transaction_state-0, __transaction_state-1, __consumer_offsets-0, __consumer_offsets-1: {USED}"],
        ),
    ],
)
def test_what_the_workload_needs_is_there(name: str, workload: dict[str, Any], says: list[str]) -> None:
    """Each partition, on any broker."""
    story = planted_story(name)
    assert doubts(configured(story, 2, **workload), story) == says


def test_a_partition_that_no_broker_has_is_missed() -> None:
    """Also the last one, of which nothing else tells."""
    story = planted_story(BANK)
    assert doubts(configured(story, 3), story) == [f"__transaction_state-2: {USED}"]
    assert doubts(configured(story, 3, kind="streams"), story) == []


def test_a_log_that_cannot_be_read_is_missed() -> None:
    """A damaged batch of a coordinator accuses no one; what it would have said is not known."""
    story = planted_story("a transaction without one of its markers")
    run = configured(story, 2)
    assert doubts(run, story) == []
    log = story.transaction_state[1]
    log[1] = replace(log[1], spoil=lambda data: data[:-1] + bytes([data[-1] ^ 0xFF]))
    assert doubts(run, story) == ["__transaction_state-1: its most advanced log cannot be read to its end"]
    story.transaction_state[1] = state_log([("x", state_value(0, 1))])
    log = story.transaction_state[1]
    log[0] = replace(log[0], spoil=lambda data: data[:-1])
    assert doubts(run, story) == ["__transaction_state-1: its most advanced log cannot be read to its end"]
