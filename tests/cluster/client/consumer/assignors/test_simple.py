"""``range`` and ``roundrobin``: Kafka's examples, and each partition once."""

from __future__ import annotations

import pytest
from hypothesis import given

from cluster.client.consumer.assignors.catalogue import ASSIGNORS, COOPERATIVE
from cluster.client.consumer.assignors.simple import assign_range, assign_round_robin
from cluster.client.consumer.assignors.subscribers import Divided, Subscriber
from cluster.protocol.consumer_protocol import Subscription
from tests.cluster.client.consumer.assignors.groups import COUNTS, GROUPS, check_once, eager, partitions

Wanted = dict[str, list[str]]


def written(divided: dict[str, str]) -> Divided:
    return {member_id: partitions(text) for member_id, text in divided.items()}


@pytest.mark.parametrize(
    ("counts", "wanted", "divided"),
    [
        ({"t0": 3, "t1": 3}, {"A": ["t0", "t1"], "B": ["t0", "t1"]}, {"A": "t0:0,1 t1:0,1", "B": "t0:2 t1:2"}),
        ({"t0": 2}, {"A": ["t0"], "B": ["t0"], "C": ["t0"]}, {"A": "t0:0", "B": "t0:1", "C": ""}),
        ({"t0": 3, "t1": 2}, {"A": ["t0"], "B": ["t0", "t1"], "C": ["t0"]},
         {"A": "t0:0", "B": "t0:1 t1:0,1", "C": "t0:2"}),
        ({"t0": 3}, {"A": ["t0", "gone"]}, {"A": "t0:0,1,2"}),
        ({}, {"A": ["t0"]}, {"A": ""}),
    ],
)  # fmt: skip
def test_range(counts: dict[str, int], wanted: Wanted, divided: dict[str, str]) -> None:
    """Runs of each topic; the first members have one more."""
    assert assign_range(counts, eager(wanted)) == written(divided)


@pytest.mark.parametrize(
    ("counts", "wanted", "divided"),
    [
        ({"t0": 3, "t1": 3}, {"A": ["t0", "t1"], "B": ["t0", "t1"]}, {"A": "t0:0,2 t1:1", "B": "t0:1 t1:0,2"}),
        ({"t0": 1, "t1": 2, "t2": 3}, {"A": ["t0"], "B": ["t0", "t1"], "C": ["t0", "t1", "t2"]},
         {"A": "t0:0", "B": "t1:0", "C": "t1:1 t2:0,1,2"}),
        ({}, {"A": []}, {"A": ""}),
    ],
)  # fmt: skip
def test_round_robin(counts: dict[str, int], wanted: Wanted, divided: dict[str, str]) -> None:
    """One to each in turn, past those that do not want it."""
    assert assign_round_robin(counts, eager(wanted)) == written(divided)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_static_members_keep_their_place(name: str) -> None:
    """They come first, in order of their instances, whatever their ids are."""
    subscription = Subscription(("t0",))
    before = [Subscriber("z", subscription, "i1"), Subscriber("y", subscription, "i2"), Subscriber("a", subscription)]
    after = [Subscriber("b", subscription, "i1"), Subscriber("y", subscription, "i2"), Subscriber("a", subscription)]
    divided = ASSIGNORS[name]({"t0": 5}, before)
    assert divided["z"][0] == ("t0", 0)
    assert ASSIGNORS[name]({"t0": 5}, after) == {"b": divided["z"], "y": divided["y"], "a": divided["a"]}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(COUNTS, GROUPS)
def test_each_partition_once(name: str, counts: dict[str, int], wanted: Wanted) -> None:
    """All four give each partition that someone wants to one member that wants it, in whatever order members come."""
    divided = ASSIGNORS[name](counts, eager(wanted))
    check_once(counts, wanted, divided)
    assert ASSIGNORS[name](counts, eager(wanted)[::-1]) == divided


def test_the_names_are_kafkas() -> None:
    """Groups of several clients have a name in common."""
    assert set(ASSIGNORS) == {"range", "roundrobin", "sticky", "cooperative-sticky"}
    assert set(ASSIGNORS) >= COOPERATIVE
