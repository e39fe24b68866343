"""TopicCreator: one request for a topic at a time, and none after the end."""

from __future__ import annotations

import asyncio

from cluster.broker.internal_topics import TopicPlan
from cluster.broker.topic_creation import TopicCreator
from cluster.controller.topics import TopicRequest
from tests.support.virtual_time import run


def test_a_broker_that_stops_asks_for_no_topic() -> None:
    """Who waits for the controller's answer waits no longer, and no request follows."""

    async def main() -> tuple[list[str], int]:
        asked: list[str] = []

        async def make(topic: TopicRequest, _timeout_ms: int) -> None:
            asked.append(topic.name)
            await asyncio.Event().wait()

        creator = TopicCreator(make, lambda _name: TopicPlan(), 1000)
        creator.create("t")
        creator.create("t")
        await asyncio.sleep(1)
        creator.close()
        creator.create("u")
        await asyncio.sleep(1)
        return asked, len(asyncio.all_tasks())

    assert run(main()) == (["t"], 2)
