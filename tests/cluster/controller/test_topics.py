"""What topics are refused, with which code and text."""

from __future__ import annotations

from random import Random

import pytest

from cluster.controller.topics import (
    MAX_PARTITIONS_AT_ONCE,
    TopicError,
    TopicRequest,
    check_manual_assignment,
    check_name,
    plan_added_partitions,
    plan_assignment,
)
from cluster.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("ünicode", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("taken", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("dotted_name", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_bad_names(name, code):
    """Names become directories and metric names: Kafka's own limits."""
    with pytest.raises(TopicError) as caught:
        check_name(name, {"taken", "dotted.name"})
    assert caught.value.error_code is code


@pytest.mark.parametrize("name", ["a", "a" * 249, "A.b_c-1", "...", "__consumer_offsets"])
def test_good_names(name):
    """Letters, digits, dot, underscore and dash, up to 249 of them."""
    check_name(name, {"taken"})


def plan(request: TopicRequest, live=(1, 2, 3)):
    return plan_assignment(request, live, Random(1), default_partitions=4, default_replication_factor=2)


def test_minus_one_means_the_broker_s_default():
    """Partitions and replicas of -1 are the broker's defaults (KIP-464)."""
    placed = plan(TopicRequest("t"))
    assert len(placed) == 4
    assert {len(replicas) for replicas in placed.values()} == {2}


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (TopicRequest("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than available brokers: 3"),
        (TopicRequest("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (TopicRequest("t", 0, 1), ErrorCode.INVALID_PARTITIONS, "larger than 0"),
        (TopicRequest("t", -2, 1), ErrorCode.INVALID_PARTITIONS, "larger than 0"),
        (TopicRequest("t", 1, 1, [(0, (1,))]), ErrorCode.INVALID_REQUEST, "Both"),
        (TopicRequest("t", assignments=[(0, (1, 9))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Unknown broker"),
        (TopicRequest("t", assignments=[(1, (1,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive"),
        (TopicRequest("t", assignments=[(0, (1, 1))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Duplicate"),
        (TopicRequest("t", assignments=[(0, ())]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
        (TopicRequest("t", assignments=[(0, (1,)), (0, (2,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assigned twice"),
        (TopicRequest("t", assignments=[(0, (1, 2)), (1, (3,))]), ErrorCode.INVALID_REPLICATION_FACTOR, "same number"),
    ],
)
def test_requests_that_cannot_be_met(request_, code, text):
    """A clear line for the client, and the code it expects."""
    with pytest.raises(TopicError, match=text) as caught:
        plan(request_)
    assert caught.value.error_code is code


def test_a_manual_assignment_is_taken_as_it_is():
    """The client's order is the order of preference."""
    assert check_manual_assignment({0: (3, 1), 1: (2, 3)}, {1, 2, 3}) == {0: (3, 1), 1: (2, 3)}


def test_create_partitions_counts_the_new_total():
    """Never fewer, never the same; given assignments must match in number and factor."""
    existing = {0: (1, 2), 1: (2, 3)}
    assert sorted(plan_added_partitions(existing, 5, None, {1, 2, 3})) == [2, 3, 4]
    assert plan_added_partitions(existing, 3, [(3, 1)], {1, 2, 3}) == {2: (3, 1)}
    for total, given, code in [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (4, [(3, 1)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [(3,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [(3, 9)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ]:
        with pytest.raises(TopicError) as caught:
            plan_added_partitions(existing, total, given, {1, 2, 3})
        assert caught.value.error_code is code


def test_nobody_makes_a_million_partitions_at_once():
    """Ten bytes of a request must not make the controller build a list of thousands of millions."""
    most = MAX_PARTITIONS_AT_ONCE
    assert len(plan(TopicRequest("t", most, 1))) == most
    existing = {0: (1, 2)}
    for refused in (
        lambda: plan(TopicRequest("t", 2**31 - 1, 1)),
        lambda: plan(TopicRequest("t", -1, -1, [(number, (1,)) for number in range(most + 1)])),
        lambda: plan_added_partitions(existing, 2**31 - 1, None, {1, 2}),
        lambda: plan_added_partitions(existing, 4, None, {1, 2}, 2),
    ):
        with pytest.raises(TopicError) as caught:
            refused()
        assert caught.value.error_code is ErrorCode.POLICY_VIOLATION
