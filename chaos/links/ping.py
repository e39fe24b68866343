"""A link as those who use it find it: a request of our own through it, a close, an attempt to connect. Blocking.

Needs no counters of the server, so an external Toxiproxy is measured in the same way. Owns the bytes and the readings
of the clock; what a reading proves is a fault's own.
"""

from __future__ import annotations

import socket
import struct

from cluster.seams.clock import SystemClock
from cluster.seams.units import ms_of_ns, seconds_of_ms

_CLOCK = SystemClock()
#: ApiVersions, version 0: every broker answers it, and on every listener.
_REQUEST = struct.Struct(">ihhih")
_API_VERSIONS = 18
_SIZE_BYTES = 4
#: The longest client id of ours, which pads a request.
_PADDING_BYTES = 1_000

#: How much of a request is there without padding.
PING_BYTES = _REQUEST.size


def ping(address: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
    """How many ms requests of about ``size_bytes`` in all (at least one) and their answers take, on a connection of
    their own; None if it cannot be made, or they are not all answered in time."""
    try:
        with _connected(address, timeout_ms) as connection:
            return _answered_ms(connection, timeout_ms, size_bytes)
    except OSError:
        return None


def close_ms(address: str, *, timeout_ms: int) -> float | None:
    """How many ms after our end of a connection its other end comes; None if it does not come in time."""
    try:
        with _connected(address, timeout_ms) as connection:
            _answered_ms(connection, timeout_ms, 0)
            start_ns = _CLOCK.monotonic_ns()
            connection.shutdown(socket.SHUT_WR)
            try:
                while connection.recv(4_096):
                    pass
            except ConnectionError:
                pass  # a RST ends it as well
            return ms_of_ns(_CLOCK.monotonic_ns() - start_ns)
    except OSError:
        return None


def is_refused(address: str, *, timeout_ms: int) -> bool:
    """Whether a connection is refused: no one listens."""
    try:
        _connected(address, timeout_ms).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _connected(address: str, timeout_ms: int) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=seconds_of_ms(timeout_ms))


def _answered_ms(connection: socket.socket, timeout_ms: int, size_bytes: int) -> float:
    """Raises ``OSError``."""
    start_ns = _CLOCK.monotonic_ns()
    requests = _requests(size_bytes)
    connection.sendall(b"".join(requests))
    for _ in requests:
        size = int.from_bytes(_received(connection, _SIZE_BYTES, start_ns, timeout_ms), "big")
        _received(connection, size, start_ns, timeout_ms)
    return ms_of_ns(_CLOCK.monotonic_ns() - start_ns)


def _requests(size_bytes: int) -> list[bytes]:
    """As many as have this size together."""
    made: list[bytes] = []
    left = size_bytes
    while left > 0 or not made:
        padding = min(_PADDING_BYTES, max(0, left - PING_BYTES))
        head = _REQUEST.pack(PING_BYTES - _SIZE_BYTES + padding, _API_VERSIONS, 0, len(made), padding)
        made.append(head + b"." * padding)
        left -= len(made[-1])
    return made


def _received(connection: socket.socket, size: int, start_ns: int, timeout_ms: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        left_ms = timeout_ms - ms_of_ns(_CLOCK.monotonic_ns() - start_ns)
        if left_ms <= 0:
            raise TimeoutError
        connection.settimeout(seconds_of_ms(left_ms))
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionResetError
        found += part
    return bytes(found)
