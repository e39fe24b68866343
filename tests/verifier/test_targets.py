"""Whom a fault hit: its target against its probe and the leaders. One of them alone must not lengthen an excuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verifier.test_completeness import FACTS, RUN, SECOND, incomplete
from tests.verifier.test_verdict import closing
from verifier.doubts import EXCUSES
from verifier.witness.effectiveness import Injected
from verifier.witness.witness import SLACK_NS, Sighting

LEADER, LINK, AT = "broker 1, leader of t-0", "producers-b1", 20 * SECOND
STEPS = {"steps": [{"broker": 1, "in_time": True}, {"broker": 2, "in_time": True}, {"broker": 3, "in_time": True}]}


def said(target: str, probe: Any, *looks: Sighting, fault: str = "pause-leader") -> list[str]:
    """What is said of a fault on this target. Without looks, broker 1 leads t-0 all the time."""
    each = Injected(fault, target, AT, 25 * SECOND, True, False, probe, 0, 24 * SECOND, True)
    seen = {("t", 0): looks or (Sighting(1, None, SECOND, 1),)}
    doubts = incomplete(RUN, FACTS, closing(each, looks=seen))
    found = [doubt for doubt in doubts if "is recorded on" in doubt.reason]
    assert all(doubt.blinds == EXCUSES for doubt in found)
    return [doubt.reason for doubt in found]


@pytest.mark.parametrize(
    ("target", "probe"),
    [
        (LEADER, {"broker": 1, "stopped": True}),
        ("broker 1, leader of t-0, 7 links", {"broker": 1}),
        ("7 links of broker 2", {"broker": 2, "model": "tcp"}),
        ("broker 3, follower in t-0", {"broker": 3}),
        ("brokers 1, 2, 3, one after the other", STEPS),
        (f"{LINK}, responses of the leader of t-0", {"link": LINK, "dropped_bytes": 9}),
        (f"{LINK}, at the next request of the leader of t-0", {"link": LINK, "direction": "request"}),
        ("producers-b1, producers-b2, requests 9 ms later", {"links": [LINK, "producers-b2"], "direction": "request"}),
        ("b3-b1, b2-b1, responses only, lossless", {"links": ["b3-b1", "b2-b1"], "direction": "response"}),
        ("ZooKeeper, pid 77", {"pid": 77, "dead": True}),
        (LEADER, {"error": "OSError('no')"}),
    ],
)
def test_a_target_that_its_probe_looked_at(target: str, probe: Any) -> None:
    """Targets and probes, as faults record them, raise no doubt."""
    assert said(target, probe) == []


@pytest.mark.parametrize(
    ("target", "probe"),
    [
        (LEADER, {"broker": 3}),
        (LEADER, {}),
        (LEADER, {"pid": 77, "dead": True}),
        ("broker 3, broker 1", {"broker": 3}),
        ("broker 3, producers-b1", {"broker": 3}),
        ("broker 3, b1-zk", {"broker": 3}),
        ("brokers 1, 2, 3", {"broker": 3}),
        ("broker 1", STEPS),
        ("ZooKeeper, pid 77", {"broker": 3}),
        (f"{LINK}, responses of the leader of t-0", {"link": "producers-b2"}),
        ("b3-b1, requests only, lossy", {"links": ["b3-b2"], "direction": "request"}),
        ("b3-b1, requests only, lossy", {"links": 7, "direction": "request"}),
        ("broker 1", {"steps": [1, None]}),
    ],
)
def test_a_target_that_its_probe_did_not_look_at(target: str, probe: Any) -> None:
    """An excuse goes by the target, which must be what the fault's own probe saw."""
    (reason,) = said(target, probe)
    assert target in reason
    assert "its probe looked at" in reason


@pytest.mark.parametrize("direction", ["response", ["request"], ""])
def test_a_target_with_another_direction_than_its_probe(direction: Any) -> None:
    """What holds responses back holds back nothing that a producer sent."""
    (reason,) = said("b3-b1, requests only, lossy", {"links": ["b3-b1"], "direction": direction}, fault="cut-link")
    assert "its probe looked at the direction" in reason


@pytest.mark.parametrize("target", [LEADER, f"{LINK}, responses of the leader of t-0"])
@pytest.mark.parametrize(
    ("looks", "led"),
    [
        ([Sighting(1, None, SECOND, 1)], True),
        ([Sighting(1, None, SECOND, 2)], False),
        ([Sighting(1, None, SECOND, None)], True),
        # the conductor may learn of an election late
        ([Sighting(1, None, SECOND, 2), Sighting(2, AT + SLACK_NS, AT + SLACK_NS + 1, 1)], True),
        ([Sighting(1, None, SECOND, 2), Sighting(2, AT + SLACK_NS + 1, AT + SLACK_NS + 2, 1)], False),
        ([Sighting(1, None, SECOND, 1), Sighting(2, SECOND, AT - SLACK_NS, 2)], True),
        ([Sighting(1, None, SECOND, 1), Sighting(2, SECOND, AT - SLACK_NS - 1, 2)], False),
    ],
)
def test_the_leader_of_a_partition_is_who_led_it(target: str, looks: list[Sighting], led: bool) -> None:
    """The conductor's looks are another record of who that was."""
    probe = {"broker": 1} if target == LEADER else {"link": LINK}
    found = said(target, probe, *looks)
    assert len(found) == (not led)
    assert all("by leaders.jsonl another broker led there" in reason for reason in found)


def test_a_partition_that_nobody_looked_at_has_no_leader() -> None:
    """Each partition of the run has its looks."""
    assert len(said("broker 1, leader of t-9", {"broker": 1})) == 1
