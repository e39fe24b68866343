"""Sends one request to one broker, on a new connection. A broker that does not answer in time is not an error.

Does not own the requests or what the answers mean: callers do.
"""

from __future__ import annotations

import logging
from typing import TypeVar

from cluster.client.connection import BrokerConnection
from cluster.client.retried_calls import parse_address
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.message_classes import Request
from cluster.seams.transport import Transport

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


async def ask(address: str, transport: Transport, timeout_ms: int, message: Request[_Answer]) -> _Answer | None:
    """The answer of the broker at ``address`` (``host:port``); None if it is unreachable or does not answer in time.

    ``timeout_ms`` applies to connecting and to the request, each.
    """
    host, port = parse_address(address)
    try:
        connection = await BrokerConnection.open(
            transport, host, port, client_id="gapless-conductor", timeout_ms=timeout_ms
        )
    except OSError as error:
        logger.debug("%s cannot be reached: %r", address, error)
        return None
    try:
        return await connection.send(message, SUPPORTED[ApiKey(message.API_KEY)][1], timeout_ms)
    except OSError as error:
        logger.debug("%s does not answer: %r", address, error)
        return None
    finally:
        connection.close()
