"""What the kernel knows of the other end of a TCP connection. Owns the question; reads nothing from the connection."""

from __future__ import annotations

import asyncio
import socket

#: The first byte of TCP_INFO while neither end has closed.
_ESTABLISHED = 1


def has_left(transport: asyncio.Transport) -> bool:
    """Whether the peer has closed its end, or the connection is broken: also behind what was not read yet.

    False where the kernel does not say: TCP_INFO is Linux's.
    """
    if not hasattr(socket, "TCP_INFO"):
        return False
    connected: socket.socket = transport.get_extra_info("socket")
    try:
        return connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED
    except OSError:  # closed meanwhile
        return True
