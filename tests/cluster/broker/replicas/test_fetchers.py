"""Fetchers: one for each leader that something is followed from, and none after the end."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from cluster.broker.replicas.fetchers import Fetchers


def replica(number: int, leader_id: int) -> Any:
    return Mock(key=("t", number), leader_id=leader_id)


def test_one_fetcher_for_each_leader() -> None:
    """It is closed when nothing is followed from that leader anymore."""
    made: dict[int, Mock] = {}

    def make(leader_id: int) -> Any:
        made[leader_id] = Mock(is_idle=True)
        return made[leader_id]

    fetchers = Fetchers(make)
    fetchers.follow(replica(0, 1))
    fetchers.follow(replica(1, 1))
    fetchers.follow(replica(0, 2))
    assert sorted(made) == [1, 2]
    assert [made[1].close.call_count, made[2].close.call_count] == [1, 0]
    fetchers.close()
    assert made[2].close.call_count == 1


def test_a_role_that_is_taken_while_the_broker_stops_opens_nothing() -> None:
    """LeaderAndIsr opens logs in steps, and continues after the fetchers are closed: one more would fetch into
    logs that are closed, and never end."""
    make = Mock()
    fetchers = Fetchers(make)
    fetchers.close()
    fetchers.follow(replica(0, 1))
    fetchers.leave(("t", 0))
    assert not make.called
