"""Each invariant of a replica and of what it follows, broken by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from uuid import UUID

import pytest

from cluster.broker.metrics import Counters
from cluster.broker.replicas import invariants
from cluster.broker.replicas.assignments import Role
from cluster.broker.replicas.following import Following, Question
from cluster.broker.replicas.host import TopicSettings
from cluster.broker.replicas.replica import Replica
from cluster.broker.rules import Rules
from cluster.log.config import LogConfig
from cluster.protocol.fetch import FetchResponse
from tests.cluster.broker.replicas.test_following import SESSION, ask, result
from tests.cluster.log.builders import append, bench, make_batch, open_log, replicated
from tests.support.invariants import is_named, raised, stated

ME, OTHER = 1, 2


def replica(leader: int) -> Replica:
    """Replica of broker 1 with two records, in leader epoch 3."""
    host = SimpleNamespace(
        broker_id=ME,
        rules=Rules(),
        counters=Counters(),
        lag_time_max_ms=1000,
        is_alive=lambda _broker: True,
        journal=lambda event, details: None,
    )
    log = open_log(bench())
    append(log, leader_epoch=2)
    found = Replica("t", 0, UUID(int=7), log, 0, TopicSettings(LogConfig(), 1), host)  # type: ignore[arg-type]
    role = Role(leader, 3, 5, (ME, OTHER), (ME, OTHER))
    if leader == ME:
        found.lead(role, 0)
        append(log, leader_epoch=3)
    else:
        found.follow(role)
        log.append_as_follower(replicated(make_batch(base_offset=1, leader_epoch=3)))
    return found


def watermark_is(offset: int) -> Callable[[Replica], None]:
    return lambda found: setattr(found._follower_log, "high_watermark", offset)


def take_a_later_epoch(found: Replica) -> None:
    found.leader_epoch += 1


def take_the_isr_of_another_time(found: Replica) -> None:
    found.partition_epoch += 1


def name_another_leader(found: Replica) -> None:
    found.leader_id = OTHER


def lead_without_an_epoch_in_the_log(found: Replica) -> None:
    found.log.epochs.truncate_from_end(1)


def follow_itself(found: Replica) -> None:
    found.leader_id = ME


def hold_a_later_epoch_than_the_leader(found: Replica) -> None:
    found.log.epochs.assign(4, 2)


BREAKS: list[tuple[str, int, Callable[[Replica], None]]] = [
    ("watermark-in-log", OTHER, watermark_is(3)),
    ("watermark-in-log", OTHER, watermark_is(-1)),
    ("role-of-leader", ME, take_a_later_epoch),
    ("role-of-leader", ME, take_the_isr_of_another_time),
    ("role-of-leader", ME, name_another_leader),
    ("role-of-leader", ME, lead_without_an_epoch_in_the_log),
    ("role-of-follower", OTHER, follow_itself),
    ("role-of-follower", OTHER, hold_a_later_epoch_than_the_leader),
]


@pytest.mark.parametrize(("name", "leader", "break_it"), BREAKS)
def test_what_is_broken_is_named(name: str, leader: int, break_it: Callable[[Replica], None]) -> None:
    """One line with the invariant's name and the values."""
    found = replica(leader)
    is_named(name, lambda: invariants.validate(found), lambda: break_it(found))


def hold(following: Following, question: Question) -> None:
    """The leader has opened a session, and had no records."""
    for followed, each in following.answered(question, FetchResponse(1, 0, SESSION, 0, [result(0)])):
        following.handled(followed, each)


def follow_another(following: Following, found: Replica) -> None:
    found.leader_id = 3


def grow_unseen(following: Following, found: Replica) -> None:
    found.log.append_as_follower(replicated(make_batch(base_offset=2, leader_epoch=3)))


def forget_it(following: Following, found: Replica) -> None:
    following._held.clear()


FOLLOWING_BREAKS: list[tuple[str, Callable[[Following, Replica], None]]] = [
    ("follows-its-leader", follow_another),
    ("fetch-at-the-end", grow_unseen),
    ("follows-somehow", forget_it),
]


@pytest.mark.parametrize(("name", "break_it"), FOLLOWING_BREAKS)
def test_what_is_broken_of_a_fetch_is_named(name: str, break_it: Callable[[Following, Replica], None]) -> None:
    """In a session that holds the replica."""
    following, found = Following(1000), replica(OTHER)
    following.add(found)
    hold(following, ask(following))
    is_named(
        name,
        lambda: invariants.validate_following(following, OTHER, is_answered=True),
        lambda: break_it(following, found),
    )


def test_a_pause_and_a_request_on_its_way_are_no_forgetting() -> None:
    """While it pauses the leader is asked nothing; while it is asked for outside of a session nobody else knows."""
    following, found = Following(1000), replica(OTHER)
    following.add(found)
    question = ask(following)
    invariants.validate_following(following, OTHER, is_answered=False)
    hold(following, question)
    following.pause(following._followed["t", 0], math.inf)
    invariants.validate_following(following, OTHER, is_answered=True)


def test_each_is_stated_checked_and_broken() -> None:
    """In words, in code, and by hand."""
    broken = {name for name, *_ in BREAKS} | {name for name, _ in FOLLOWING_BREAKS}
    assert stated(invariants) == raised(invariants) == broken
