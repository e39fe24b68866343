"""TopicCreator: topics that come into being because someone named them (Kafka's AutoTopicCreationManager).

Owns the question to the controller, one for each name at a time. Does not own whether a topic may be made: Metadata has
``auto.create.topics.enable``, and FindCoordinator needs none for an internal topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cluster.broker.internal_topics import INTERNAL_TOPICS, TopicPlan
from cluster.controller.topics import TopicError, TopicRequest
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: Topics that are asked for at a time; anyone who wants another will ask again.
MOST_ASKED_FOR = 100
#: An internal topic that could not be made is not asked for again before this: every client of a group wants it.
AGAIN_S = 1.0


class TopicCreator:
    """``make`` has the controller make a topic, known to the brokers within a time in ms, and returns why it did not;
    ``plan`` says what to make."""

    def __init__(
        self,
        make: Callable[[TopicRequest, int], Awaitable[TopicError | None]],
        plan: Callable[[str], TopicPlan],
        timeout_ms: int,
    ) -> None:
        self._make = make
        self._plan = plan
        self._timeout_ms = timeout_ms
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"TopicCreator(asking for {sorted(self._asking)})"

    def create(self, name: str) -> None:
        """Begin; the client asks again, and finds the topic then. One request per name at a time."""
        has_room = name in INTERNAL_TOPICS or len(self._asking) < MOST_ASKED_FOR
        if name not in self._asking and has_room and not self._is_closed:
            self._asking[name] = asyncio.get_running_loop().create_task(self._create(name))

    def close(self) -> None:
        """Ask for nothing anymore: the broker stops."""
        self._is_closed = True
        for asking in self._asking.values():
            asking.cancel()

    async def _create(self, name: str) -> None:
        try:
            wanted = self._plan(name)
            topic = TopicRequest(name, wanted.partitions, wanted.replication_factor, config=[*wanted.config.items()])
            refusal = await self._make(topic, self._timeout_ms)
            is_there = refusal is None or refusal.error_code is ErrorCode.TOPIC_ALREADY_EXISTS
            if refusal is not None and not is_there and name in INTERNAL_TOPICS:
                logger.warning("topic %s cannot be created: %s", name, refusal)
                await asyncio.sleep(AGAIN_S)
        except OSError as error:
            logger.info("topic %s could not be created: %r", name, error)
        finally:
            del self._asking[name]
