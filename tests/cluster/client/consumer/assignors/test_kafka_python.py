"""``range`` and ``roundrobin`` against those of kafka-python, whose members share groups with others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from cluster.client.consumer.assignors.catalogue import ASSIGNORS
from cluster.client.consumer.assignors.subscribers import Divided
from cluster.protocol.consumer_protocol import decode_assignment
from tests.cluster.client.consumer.assignors.groups import COUNTS, GROUPS, UNIFORM, eager

Wanted = dict[str, list[str]]
Counts = dict[str, int]


def theirs(assignor: Any, counts: Counts, wanted: Wanted) -> Divided:
    """What kafka-python divides, through the bytes that it sends."""
    members = [
        SimpleNamespace(member_id=member_id, group_instance_id=None, metadata=SimpleNamespace(topics=topics))
        for member_id, topics in wanted.items()
    ]
    known = {topic: set(range(count)) for topic, count in counts.items()}
    divided = assignor.assign(SimpleNamespace(partitions_for_topic=known.get), members)
    return {
        member_id: sorted(decode_assignment(bytes(assigned.encode(version=0))).partitions)
        for member_id, assigned in divided.items()
    }


@given(COUNTS, GROUPS)
def test_ranges_are_theirs(counts: Counts, wanted: Wanted) -> None:
    """It does not matter which client leads the group."""
    check(RangePartitionAssignor, counts, wanted)


@given(COUNTS, UNIFORM)
def test_rounds_are_theirs(counts: Counts, wanted: Wanted) -> None:
    """Where all want the same: kafka-python 3.0 raises KeyError as soon as it has to pass a member over."""
    check(RoundRobinPartitionAssignor, counts, wanted)


def check(assignor: Any, counts: Counts, wanted: Wanted) -> None:
    divided = ASSIGNORS[assignor.name](counts, eager(wanted))
    assert {member_id: sorted(owned) for member_id, owned in divided.items()} == theirs(assignor, counts, wanted)
