"""Ports for servers that must be told one beforehand. Owns the choice."""

from __future__ import annotations

import os
import socket
from itertools import count

#: Below those that the system hands out to whoever asks for any.
PORTS = range(15_000, 32_000)
_asked = count()


def fixed_port() -> int:
    """One on which no one listens, and that no one is given by chance before it is used."""
    for _ in PORTS:
        port = PORTS[(101 * os.getpid() + 11 * next(_asked)) % len(PORTS)]
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
