"""What a run needs from outside, looked at before anything is started: Java, a foreign ZooKeeper or Toxiproxy, disk.

Each absence is one line that names the thing and the fix. Owns no process.
"""

from __future__ import annotations

import asyncio

from chaos.conductor.resources import LEAVE_FREE_BYTES
from chaos.conductor.settings import ExperimentSettings
from chaos.exits import BadRequest
from cluster.process.java import JavaNotFound, find_java
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.storage import Storage
from cluster.seams.transport import Connection

REACH_TIMEOUT_MS = 3_000


def check_outside(settings: ExperimentSettings) -> None:
    """Java (ZooKeeper and the verifier run on it), and the servers that were named. Raises BadRequest."""
    check_java()
    if settings.zookeeper is not None:
        host, separator, port = settings.zookeeper.rpartition(":")
        if not separator or not port.isdigit():
            raise BadRequest(f"--zookeeper wants HOST:PORT, not {settings.zookeeper!r}")
        try:
            asyncio.run(_reach(host, int(port)))
        except OSError as error:
            raise BadRequest(f"--zookeeper {settings.zookeeper} cannot be reached: {error}; start it first") from error
    if settings.toxiproxy is not None:
        from chaos.links import LinkError, Links

        try:
            Links(settings.toxiproxy).version()
        except (LinkError, ValueError, KeyError) as error:
            raise BadRequest(
                f"--toxiproxy {settings.toxiproxy} does not answer as one, start it first: {error}"
            ) from error


def check_java() -> None:
    """Raises BadRequest if there is no usable Java, the wheel's included."""
    try:
        find_java()
    except JavaNotFound as error:
        raise BadRequest(str(error)) from error


def check_disk(settings: ExperimentSettings, storage: Storage, path: str) -> float:
    """The gigabytes that the run expects to write. Raises BadRequest if they do not fit."""
    free, expected = storage.free_bytes(path), settings.expected_disk_bytes()
    if free < expected + LEAVE_FREE_BYTES:
        raise BadRequest(
            f"the run expects to write {expected / 1e9:.1f} GB and must leave 2 GB free, but {path} has "
            f"{free / 1e9:.1f} GB; free some, ask for less (--rate, --time-limit), or choose another place with --out"
        )
    return expected / 1e9


class _Nobody:
    """Takes what a server that was only to be reached may say."""

    def on_frame(self, frame: memoryview) -> None:
        """Not asked."""

    def on_eof(self) -> None:
        """Not of interest."""

    def on_closed(self, reason: str) -> None:
        """Not of interest."""


async def _reach(host: str, port: int) -> None:
    def accept(_: Connection) -> _Nobody:
        return _Nobody()

    connection = await AsyncioTransport().connect(host, port, accept, timeout_ms=REACH_TIMEOUT_MS)
    connection.abort()
    # The transport tells the end of a connection in the next turn of the loop.
    await asyncio.sleep(0)
