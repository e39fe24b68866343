"""Producer ids for this broker's clients: takes from the blocks at hand and fetches the next one ahead.

Owns the one request in flight and its retries (Kafka's RPCProducerIdManager). The arithmetic of blocks is
``cluster.controller.producer_ids``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cluster.controller.producer_ids import ProducerIdBlock, ProducerIdSupply
from cluster.metadata.store import StoreError
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: The pause before the controller is asked again, as in Kafka's RPCProducerIdManager.
RETRY_S = 0.05


class CoordinatorLoading(Exception):
    """No producer id is at hand yet; the next block is on its way (KafkaApis.handleInitProducerIdRequest)."""

    error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class NoProducerIds(Exception):
    """The controller cannot make another block: producer ids are exhausted."""

    error_code = ErrorCode.UNKNOWN_SERVER_ERROR


class ProducerIdManager:
    """``request_block`` asks the controller once. It raises OSError or StoreError for "try again", NoProducerIds."""

    def __init__(self, request_block: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._request_block = request_block
        self._supply = ProducerIdSupply()
        self._exhausted: NoProducerIds | None = None
        self._request: asyncio.Task[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"ProducerIdManager({self._supply!r}, {'asking' if self._request else 'idle'})"

    def prefetch(self) -> None:
        """Ask for a block if one is wanted and none is on its way."""
        if self._supply.wants_block and self._request is None and not self._closed:
            self._request = asyncio.get_running_loop().create_task(self._fetch(), name="producer-id-block")

    def take(self) -> int:
        """An id that no one was given before. Raises CoordinatorLoading, NoProducerIds."""
        taken = self._supply.take()
        exhausted = self._exhausted
        self.prefetch()
        if taken is not None:
            return taken
        if exhausted is not None:
            raise exhausted
        raise CoordinatorLoading("no producer id is at hand yet")

    def close(self) -> None:
        self._closed = True
        if self._request is not None:
            self._request.cancel()

    async def _fetch(self) -> None:
        try:
            while True:
                try:
                    block = await self._request_block()
                except (OSError, StoreError) as error:
                    logger.debug("no producer ids yet: %r", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                except NoProducerIds as error:
                    self._exhausted = error
                    return
                self._exhausted = None
                self._supply.add(block)
                return
        finally:
            self._request = None
