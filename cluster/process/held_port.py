"""A port that no other process is given, held by a socket that does not listen. Owns that socket; knows no process."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"
#: What :func:`hold_port` gives, for annotations elsewhere.
HeldPort = socket.socket


def hold_port(port: int = 0) -> HeldPort:
    """A socket that holds a free port of loopback, or this one, without listening. Raises ``OSError`` if it is taken.

    The kernel never hands out a bound port as a free one, and lets a second socket bind it by number if both have
    SO_REUSEADDR and neither listens yet, as those of ZooKeeper and of our brokers do. So no other process can slip in
    between. While no one listens, connections to it are refused.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        holder.bind((HOST, port))
    except OSError:
        holder.close()
        raise
    return holder


def port_of(holder: HeldPort) -> int:
    return int(holder.getsockname()[1])
