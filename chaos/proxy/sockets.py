"""The only module of the proxy that uses sockets directly. Owns socket options, binding, and reserving ports.

All other modules use asyncio's transports, which cannot send a RST or hold a port without listening on it.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct

#: The type that :func:`bind` returns, for annotations in other modules.
BoundSocket = socket.socket

LISTEN_BACKLOG = 1024
_RESET_LINGER = struct.pack("ii", 1, 0)


def bind(host: str, port: int) -> BoundSocket:
    """A TCP socket that is bound to a numeric address, but does not listen yet. Raises ``OSError``.

    While it is open, the kernel does not assign the port to another process, and refuses connections to it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.setblocking(False)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def listen(bound: BoundSocket) -> None:
    """Start listening. Raises ``OSError``; then the caller must close the socket."""
    bound.listen(LISTEN_BACKLOG)


def address_of(bound: BoundSocket) -> tuple[str, int]:
    """The numeric host and port that a socket is bound to."""
    name = bound.getsockname()
    return str(name[0]), int(name[1])


async def resolve(host: str) -> str:
    """The numeric address of a host name, IPv4 if it has one. Raises ``OSError`` if there is none."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    infos.sort(key=lambda info: info[0] != socket.AF_INET)
    return str(infos[0][4][0])


def is_numeric(host: str) -> bool:
    """Whether a host is an address already."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def arm_reset(transport: asyncio.BaseTransport) -> None:
    """Make the close of this transport's socket send a RST instead of a FIN."""
    connected = transport.get_extra_info("socket")
    if connected is not None and connected.fileno() >= 0:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_LINGER)


def raise_open_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, because each connection needs two descriptors."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
