"""The topic of a run is created once the controller counts all brokers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from chaos.conductor.declared import create_topic
from cluster.client import NewTopic
from cluster.client.errors import AdminError
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import SystemClock

TOPIC = NewTopic("t", 1, 3, {})


class Admin:
    """Refuses as it is told, then creates."""

    def __init__(self, *refusals: ErrorCode) -> None:
        self.refusals = list(refusals)
        self.created: list[NewTopic] = []

    async def create_topics(self, topics: list[NewTopic]) -> None:
        if self.refusals:
            raise AdminError(self.refusals.pop(0), "3 larger than available brokers: 2")
        self.created += topics


def create(admin: Admin, timeout_ms: int) -> None:
    asyncio.run(create_topic(cast(Any, admin), TOPIC, SystemClock(), timeout_ms))


def test_a_broker_that_is_not_counted_yet_is_waited_for() -> None:
    """A broker answers before the controller has heard of it: the topic is created a moment later."""
    admin = Admin(ErrorCode.INVALID_REPLICATION_FACTOR)
    create(admin, 5_000)
    assert admin.created == [TOPIC]


def test_a_refusal_that_lasts_is_raised() -> None:
    """When the time is over the cluster's own answer is told; another refusal is told at once."""
    with pytest.raises(AdminError, match="available brokers"):
        create(Admin(*[ErrorCode.INVALID_REPLICATION_FACTOR] * 9), 0)
    admin = Admin(ErrorCode.INVALID_TOPIC_EXCEPTION)
    with pytest.raises(AdminError, match="INVALID_TOPIC"):
        create(admin, 5_000)
    assert admin.created == []
