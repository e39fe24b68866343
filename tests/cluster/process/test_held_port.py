"""A held port: the kernel gives it to no one by chance, refuses connections, and lets its owner listen there."""

from __future__ import annotations

import socket
import struct

import pytest

from cluster.process.held_port import HOST, hold_port, port_of

#: Of Linux 6.3 and later, not in Python's ``socket``: the first and last port that the kernel may pick.
IP_LOCAL_PORT_RANGE = 51


def picked(only: int, *, reuse: bool) -> int | None:
    """The port that the kernel picks if it may pick only this one; None if it picks none."""
    with socket.socket() as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            asking.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("I", only | only << 16))
        except OSError:
            pytest.skip("this kernel cannot be told which ports to pick from")
        try:
            asking.bind((HOST, 0))
        except OSError:
            return None
        return int(asking.getsockname()[1])


def test_the_kernel_picks_it_for_no_one_until_it_is_let_go() -> None:
    """Not even for a socket with SO_REUSEADDR, which could bind it by number."""
    with hold_port() as holder:
        port = port_of(holder)
        assert (picked(port, reuse=True), picked(port, reuse=False)) == (None, None)
    assert picked(port, reuse=True) == port


def test_no_one_is_let_in_until_its_owner_listens() -> None:
    """Connections are refused, and the owner binds it by number, again and again."""
    with hold_port() as holder:
        port = port_of(holder)
        for _life in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((HOST, port))
            with socket.create_server((HOST, port)), socket.create_connection((HOST, port)):
                pass


def test_a_port_on_which_someone_listens_cannot_be_held() -> None:
    """It is the other's, and the error says so."""
    with socket.create_server((HOST, 0)) as server, pytest.raises(OSError, match="in use"):
        hold_port(server.getsockname()[1])
