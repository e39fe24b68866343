"""Measures a link as its clients experience it: sends requests through it, closes a connection, or tries to connect.

Every function blocks. Needs no counters of the server, so it works the same with an external Toxiproxy. Owns the bytes
that are sent and the measurement. Does not own what a measurement proves (``chaos.faults``).
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
#: The longest client id, which pads a request.
_PADDING_BYTES = 1_000

#: The size of a request without padding.
PING_BYTES = _REQUEST.size


def ping(address: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
    """The ms that requests of ``size_bytes`` in total, but at least one request, and their answers take.

    Uses a new connection to ``address``, a ``host:port``. Returns None if connecting fails, or if not all requests are
    answered within ``timeout_ms``.
    """
    try:
        with _connected(address, timeout_ms) as connection:
            return _answered_ms(connection, timeout_ms, size_bytes)
    except OSError:
        return None


def close_ms(address: str, *, timeout_ms: int) -> float | None:
    """The ms from when we close our side of a connection until the other side closes; None if that takes too long."""
    try:
        with _connected(address, timeout_ms) as connection:
            _answered_ms(connection, timeout_ms, 0)
            start_ns = _CLOCK.monotonic_ns()
            connection.shutdown(socket.SHUT_WR)
            try:
                while connection.recv(4_096):
                    pass
            except ConnectionError:
                pass  # a RST closes it, too
            return ms_of_ns(_CLOCK.monotonic_ns() - start_ns)
    except OSError:
        return None


def is_refused(address: str, *, timeout_ms: int) -> bool:
    """Whether an attempt to connect is refused. A timeout does not count as a refusal."""
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
    """The ms until all requests are answered on this connection. Raises ``OSError``."""
    start_ns = _CLOCK.monotonic_ns()
    requests = _requests(size_bytes)
    connection.sendall(b"".join(requests))
    for _ in requests:
        size = int.from_bytes(_received(connection, _SIZE_BYTES, start_ns, timeout_ms), "big")
        _received(connection, size, start_ns, timeout_ms)
    return ms_of_ns(_CLOCK.monotonic_ns() - start_ns)


def _requests(size_bytes: int) -> list[bytes]:
    """ApiVersions requests with about this total size; at least one."""
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
