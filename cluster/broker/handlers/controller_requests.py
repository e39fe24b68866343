"""Requests that only the controller serves: topics, elections, reassignments, ISR changes, shutdown, producer ids.

Owns the hand-over to the control plane, which answers NOT_CONTROLLER where this broker is not it, and the creation of
topics that were only asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import request_class

logger = logging.getLogger(__name__)

CREATE_TOPICS_VERSION = 7
#: A count or a replication factor of -1 stands for the broker's default.
BROKER_DEFAULT = -1
#: Topics that are asked for at a time; whoever wants another will ask again.
MOST_ASKED_FOR = 100


async def serve(services: Services, request: Any, exchange: Exchange) -> Any:
    """Any of them."""
    return await services.control.serve(request, exchange.api_version)


class TopicCreator:
    """Asks the controller for topics that clients asked Metadata about (``auto.create.topics.enable``).

    ``ask`` sends a request of a version to the controller and returns its answer.
    """

    def __init__(self, ask: Callable[[Any, int], Awaitable[Any]], timeout_ms: int) -> None:
        self._ask = ask
        self._timeout_ms = timeout_ms
        self._asking: dict[str, asyncio.Task[None]] = {}

    def create(self, name: str) -> None:
        """Begin; the client asks again, and finds the topic then. One request per name at a time."""
        if name not in self._asking and len(self._asking) < MOST_ASKED_FOR:
            self._asking[name] = asyncio.get_running_loop().create_task(self._create(name))

    async def _create(self, name: str) -> None:
        request = request_class(ApiKey.CREATE_TOPICS)
        topic = request.CreatableTopic(
            name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT, assignments=[], configs=[]
        )
        message = request(topics=[topic], timeout_ms=self._timeout_ms, validate_only=False)
        try:
            await self._ask(message, CREATE_TOPICS_VERSION)
        except OSError as error:
            logger.info("topic %s could not be created: %r", name, error)
        finally:
            del self._asking[name]
