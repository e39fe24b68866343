"""MissingTopics: of what the cluster does not have a client warns once, and again only after it was there."""

from __future__ import annotations

import logging

import pytest

from cluster.client.cluster_view import ClusterView, PartitionView, TopicView
from cluster.client.missing_topics import MissingTopics
from cluster.protocol.errors import ErrorCode


def view(**topics: int | ErrorCode) -> ClusterView:
    """Topics as their number of partitions, or their error."""
    found = {}
    for name, told in topics.items():
        code, count = (told, 0) if isinstance(told, ErrorCode) else (ErrorCode.NONE, told)
        partitions = {index: PartitionView(index, ErrorCode.NONE, 1, 0, (), (), ()) for index in range(count)}
        found[name] = TopicView(name, None, code, False, partitions)
    return ClusterView(None, -1, {}, found)


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture):
    """What was warned of since the last call."""

    def since() -> list[str]:
        texts = [" ".join(each.getMessage().split()[:2]) for each in caplog.records if each.levelno == logging.WARNING]
        caplog.clear()
        return texts

    return since


def test_a_topic_is_warned_of_once_until_it_was_there(warned):
    """However many of its partitions are used; one that went away again is warned of again."""
    missing = MissingTopics()
    used = [("t", 0), ("t", 1), ("u", 0)]
    missing.look(view(), used)
    assert (warned(), bool(missing)) == ([], False)
    for _ in range(3):
        missing.look(view(t=UNKNOWN, u=1), used)
    assert (warned(), bool(missing)) == (["topic t"], True)
    missing.look(view(t=UNKNOWN, u=UNKNOWN), used)
    assert warned() == ["topic u"]
    missing.look(view(t=2, u=UNKNOWN), used)
    missing.look(view(t=UNKNOWN, u=UNKNOWN), used)
    assert warned() == ["topic t"]
    missing.look(view(), used)
    assert (warned(), bool(missing)) == ([], False)


def test_a_partition_beyond_the_last_is_warned_of(warned, caplog):
    """With the number that there are; not one that merely has no news, nor while nothing is known of the topic."""
    missing = MissingTopics()
    missing.look(view(t=2), [("t", 1), ("t", 2)])
    assert "partition t-2 does not exist: the topic has 2 partition(s)" in caplog.text
    assert warned() == ["partition t-2"]
    missing.look(view(t=2), [("t", 1), ("t", 2), ("t", 7)])
    assert warned() == ["partition t-7"]
    missing.look(view(t=3), [("t", 2)])
    missing.look(view(t=ErrorCode.LEADER_NOT_AVAILABLE), [("t", 2)])
    unheard = view(t=3)
    del unheard.topics["t"].partitions[1]
    missing.look(unheard, [("t", 1)])
    assert (warned(), bool(missing)) == ([], False)
