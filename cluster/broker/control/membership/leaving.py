"""Leaving in order: the controller is asked to move leadership away before this broker stops (Kafka's KafkaServer).

Owns the attempts. Does not own what the controller does (``controller.controlled_shutdown``), nor the stopping itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cluster.broker.metadata_cache import MetadataCache
from cluster.config.broker import BrokerConfig
from cluster.metadata.store import StoreError
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)


async def move_leadership_away(
    broker_id: int, ask: Callable[[], Awaitable[int]], cache: MetadataCache, properties: BrokerConfig
) -> bool:
    """Up to ``controlled.shutdown.max.retries`` attempts; True if nothing is led here anymore.

    ``ask`` is ControlledShutdown, once: the number of partitions still led here; raises OSError. A broker that is alone
    does not ask: no other broker can take anything over.
    """
    attempts = properties["controlled.shutdown.max.retries"]
    pause_s = seconds_of_ms(properties["controlled.shutdown.retry.backoff.ms"])
    news = asyncio.Event()
    cache.on_update(news.set)
    for attempt in range(1, attempts + 1):
        if all(broker.broker_id == broker_id for broker in cache.alive_brokers()):
            logger.info("broker %d is the last one; its partitions go offline with it", broker_id)
            return False
        news.clear()
        try:
            remaining = await ask()
        except (OSError, StoreError) as error:
            logger.warning("controlled shutdown, attempt %d of %d: %r", attempt, attempts, error)
        else:
            if remaining == 0:
                logger.info("controlled shutdown of broker %d: nothing is led here anymore", broker_id)
                return True
            logger.info("controlled shutdown of broker %d: %d partitions could not be moved", broker_id, remaining)
        if attempt < attempts:
            try:
                async with asyncio.timeout(pause_s):
                    await news.wait()
            except TimeoutError:
                continue
    logger.warning("broker %d stops without having moved all its partitions", broker_id)
    return False
