"""What reports of replicas that cannot be hosted mean: news, whom to ask again, and when."""

from __future__ import annotations

from uuid import UUID

import pytest

from cluster.controller.context import Broker, ControllerContext, Partition, Topic, TopicPartition
from cluster.controller.offline import FIRST_PAUSE_S, LONGEST_PAUSE_S, OfflineReports
from tests.cluster.controller.situations import T0, TOPIC_ID

T1, U0 = TopicPartition("t", 1), TopicPartition("u", 0)
OTHER_ID, UNKNOWN_ID = UUID(int=8), UUID(int=9)


@pytest.fixture
def context() -> ControllerContext:
    """Brokers 1 and 2 of the epochs 101 and 102, with replicas of all three partitions."""
    topics = {
        "t": Topic("t", TOPIC_ID, {0: Partition((1, 2)), 1: Partition((1, 2))}),
        "u": Topic("u", OTHER_ID, {0: Partition((1, 2))}),
    }
    return ControllerContext(5, {number: Broker(number, 100 + number) for number in (1, 2)}, topics)


def test_a_report_is_news_once(context: ControllerContext) -> None:
    """Only what is new has consequences, and topics that there are not have none."""
    reports = OfflineReports(context)
    assert reports.cannot_host(1, 101, [(TOPIC_ID, 0), (OTHER_ID, 0), (UNKNOWN_ID, 0)]) == {T0, U0}
    assert reports.cannot_host(1, 101, [(TOPIC_ID, 0), (TOPIC_ID, 1)]) == {T1}
    assert reports.cannot_host(1, 101, [(TOPIC_ID, 1)]) == set()
    assert (context.brokers[1].offline, context.brokers[2].offline) == ({T0, T1, U0}, set())


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, 100), (1, 102), (3, 103)])
def test_another_life_of_a_broker_says_nothing(context: ControllerContext, broker_id: int, epoch: int) -> None:
    """Neither that it cannot, nor that it can; a broker that is gone does not either."""
    reports = OfflineReports(context)
    assert reports.cannot_host(broker_id, epoch, [(TOPIC_ID, 0)]) == set()
    context.brokers[1].offline.add(T0)
    assert reports.can_host(broker_id, epoch, [(TOPIC_ID, 0)]) == set()
    assert context.brokers[1].offline == {T0}


def test_what_can_be_hosted_after_all_is_back(context: ControllerContext) -> None:
    """Of what was offline; roles in others are no news."""
    reports = OfflineReports(context)
    reports.cannot_host(1, 101, [(TOPIC_ID, 0), (TOPIC_ID, 1)])
    assert reports.can_host(1, 101, [(TOPIC_ID, 1), (OTHER_ID, 0)]) == {T1}
    assert context.brokers[1].offline == {T0}
    assert reports.can_host(1, 101, [(TOPIC_ID, 1)]) == set()


def test_brokers_are_asked_for_what_is_theirs_still(context: ControllerContext) -> None:
    """What was moved to others, or deleted, is forgotten."""
    reports = OfflineReports(context)
    reports.cannot_host(1, 101, [(TOPIC_ID, 1), (TOPIC_ID, 0), (OTHER_ID, 0)])
    reports.cannot_host(2, 102, [(OTHER_ID, 0)])
    assert reports.to_ask() == [(context.brokers[1], [T0, T1, U0]), (context.brokers[2], [U0])]
    context.topics["t"].partitions[1].replicas = (2,)
    del context.topics["u"]
    assert reports.to_ask() == [(context.brokers[1], [T0])]
    assert context.brokers[2].offline == set()
    reports.can_host(1, 101, [(TOPIC_ID, 0)])
    assert reports.to_ask() == []


def test_pauses_grow_until_there_is_news(context: ControllerContext) -> None:
    """Each is twice as long, up to a minute."""
    reports = OfflineReports(context)
    reports.cannot_host(1, 101, [(TOPIC_ID, 0)])
    pauses = [reports.pause_s]
    for _ in range(6):
        reports.to_ask()
        pauses.append(reports.pause_s)
    assert pauses == [FIRST_PAUSE_S, 4, 8, 16, 32, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    reports.cannot_host(1, 101, [(TOPIC_ID, 0)])
    assert reports.pause_s == LONGEST_PAUSE_S
    reports.cannot_host(2, 102, [(TOPIC_ID, 0)])
    assert reports.pause_s == FIRST_PAUSE_S
