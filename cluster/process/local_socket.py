"""A socket in a directory, for the user who owns it alone: how a command talks to a cluster that is up.

Owns its path and its permissions. What is said over it belongs to anyone who uses it. A socket's path is at most 107
bytes long and a directory's may be longer, so both ends go through a descriptor of the directory.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

NAME = "control.sock"
#: The kernel's ``struct ucred``: the process, its user and its group.
_CREDENTIALS = struct.Struct("3i")


@contextlib.contextmanager
def listening(directory: Path) -> Iterator[socket.socket]:
    """A bound socket of this directory, which takes the place of one that was left there. Raises ``OSError``."""
    with _within(directory) as path, contextlib.closing(_stream()) as made:
        # before it has a name: there is no moment at which others may connect
        os.fchmod(made.fileno(), 0o600)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        made.bind(path)
        try:
            yield made
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def connect(directory: Path, timeout_s: float | None = None) -> socket.socket:
    """A connection to the listener in this directory. Raises ``OSError`` if there is none.

    With a ``timeout_s`` also if it takes none within that: one that is stopped would be waited for without end.
    """
    made = _stream()
    made.settimeout(timeout_s)
    try:
        with _within(directory) as path:
            made.connect(path)
    except OSError:
        made.close()
        raise
    return made


def peer_pid(connection: socket.socket) -> int:
    """The process that listens at the other end. Raises ``OSError``."""
    pid, _uid, _gid = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return int(pid)


def _stream() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


@contextlib.contextmanager
def _within(directory: Path) -> Iterator[str]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{NAME}"
    finally:
        os.close(descriptor)
