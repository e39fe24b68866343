"""How a broker listens: the bounds of each listener, from the configuration, and the name of one that fails."""

from __future__ import annotations

from cluster.config.broker import BrokerConfig
from cluster.config.listeners import ListenerAddress
from cluster.seams.transport import AcceptHandler, Listener, Transport


async def listen(
    transport: Transport, config: BrokerConfig, address: ListenerAddress, accept: AcceptHandler
) -> Listener:
    """Listen on one of ``listeners``. Raises ``OSError``, which names the key and the listener as its file.

    Brokers have descriptors of their own on a listener of their own. On one that clients share, they have the clients'.
    """
    is_for_peers = len(config.listeners) > 1 and address.name == config.inter_broker_listener_name
    try:
        return await transport.listen(
            address.host or "0.0.0.0",
            address.port,
            accept,
            max_frame_bytes=config["socket.request.max.bytes"],
            send_buffer_bytes=config["socket.send.buffer.bytes"],
            queued_max_bytes=config["queued.max.request.bytes"],
            unread_max_bytes=config["gapless.queued.max.response.bytes"],
            is_for_peers=is_for_peers,
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"listeners: {address}") from error
