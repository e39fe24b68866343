"""What a run needs from outside, checked before anything is started: Java, Spark, ZooKeeper, Toxiproxy, disk,
the port of the web interface.

Each absence is one line that names the thing and the fix. Owns no process.
"""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlsplit

from chaos.conductor.resources import GB, LEAVE_FREE_BYTES
from chaos.exits import BadRequest
from chaos.experiment.experiment import Experiment
from cluster.config.listeners import is_port
from cluster.process.java import JavaNotFound, find_java
from cluster.process.one_line import reason
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.storage import Storage
from cluster.seams.transport import Connection

REACH_TIMEOUT_MS = 3_000
#: Where Toxiproxy's API listens unless it is told otherwise.
TOXIPROXY_PORT = 8474
#: Spark masters without an address to check: they are this machine, or Hadoop's configuration has their address.
_NO_ADDRESS = re.compile(r"local(\[([1-9]\d*|\*)(, *[1-9]\d*)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]|yarn")
_PORTS = {"https": 443, "http": 80}


def check_outside(experiment: Experiment) -> None:
    """Check Java (for ZooKeeper and the verifier), and the servers and the port in the options. Raises BadRequest."""
    check_java()
    asked = experiment.asked
    if experiment.web_port:
        check_web_port(experiment.web_port)
    check_spark_master(asked.spark_master)
    if asked.zookeeper is not None:
        host, separator, port = asked.zookeeper.rpartition(":")
        if not separator or not is_port(port) or not host:
            raise BadRequest(f"--zookeeper takes HOST:PORT, not {asked.zookeeper!r}")
        try:
            asyncio.run(_reach(host, int(port)))
        except OSError as error:
            raise BadRequest(
                f"--zookeeper {asked.zookeeper} cannot be reached: {reason(error)}; start it first"
            ) from error
    if asked.toxiproxy is not None:
        check_toxiproxy(asked.toxiproxy)


def check_toxiproxy(url: str) -> None:
    """Raises BadRequest unless a server with Toxiproxy's API answers at this URL."""
    from chaos.links import LinkError, Links

    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or TOXIPROXY_PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme != "http":
        raise BadRequest(f"--toxiproxy takes http://HOST:PORT, not {url!r}")
    try:
        asyncio.run(_reach(host, port))
    except OSError as error:
        raise BadRequest(f"--toxiproxy {url} cannot be reached: {reason(error)}; start it first") from error
    try:
        Links(url).version()
    except (LinkError, ValueError, KeyError) as error:
        raise BadRequest(
            f"--toxiproxy {url} does not respond like Toxiproxy: {error}; give the port of its API"
        ) from error


def check_java() -> None:
    """Raises BadRequest if there is no usable Java, not even that of the wheel."""
    try:
        find_java()
    except JavaNotFound as error:
        raise BadRequest(str(error)) from error


def check_web_port(port: int) -> None:
    """Raises BadRequest if the port is taken. Otherwise Locust would fail only after the cluster has started."""
    check_port(f"--web-port {port}", port, "pick another, or use --web for a free port")


def check_port(asked: str, port: int, fix: str) -> None:
    """Raises BadRequest if another process listens on this port of 127.0.0.1; ``asked`` is the option with its
    value."""
    from loadgen.command import WEB_HOST

    try:
        asyncio.run(_listen(WEB_HOST, port))
    except OSError as error:
        raise BadRequest(f"cannot bind {asked}: {reason(error)}; {fix}") from error


def check_spark_master(master: str) -> None:
    """Raises BadRequest unless Spark would understand the master and one of its addresses takes a connection.

    Otherwise a run would be broken for a minute, and only then be found not to be judgeable.
    """
    if _NO_ADDRESS.fullmatch(master):
        return
    try:
        addresses = _addresses(master)
    except ValueError:
        raise BadRequest(
            f"--spark-master takes local[N], spark://HOST:PORT, k8s://https://HOST:PORT or yarn, not {master!r}"
        ) from None
    failures = []
    for host, port in addresses:
        try:
            asyncio.run(_reach(host, port))
        except OSError as error:
            failures.append(f"{host}:{port}: {reason(error)}")
        else:
            return
    raise BadRequest(
        f"--spark-master {master} cannot be reached: {'; '.join(failures)}; "
        "start it first, or leave the option out to judge on this machine"
    )


def _addresses(master: str) -> list[tuple[str, int]]:
    """Host and port of each server that a master names. Raises ``ValueError`` if it is no master's form."""
    scheme, _, rest = master.partition("://")
    urls = {"spark": [f"//{each}" for each in rest.split(",")], "k8s": [rest if "://" in rest else f"https://{rest}"]}
    found = []
    for url in urls.get(scheme, [""]):
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        if not parts.hostname or not port or parts.path or parts.query or parts.username:
            raise ValueError(master)
        found.append((parts.hostname, port))
    return found


def check_disk(experiment: Experiment, load_s: float, storage: Storage, path: str) -> float:
    """The gigabytes that a run with a load of this length expects to write. Raises BadRequest if they do not fit."""
    free, expected = storage.free_bytes(path), experiment.expected_disk_bytes(load_s)
    if free < expected + LEAVE_FREE_BYTES:
        raise BadRequest(
            f"the run expects to write {expected / GB:.1f} GB and must leave 2 GB free, but {path} has "
            f"{free / GB:.1f} GB; free some space, lower --rate or --time-limit, or write elsewhere with --out"
        )
    return expected / GB


class _Nobody:
    """Ignores everything that a server sends, because only the connection matters."""

    def on_frame(self, frame: memoryview) -> None:
        """Ignore the frame."""

    def on_eof(self) -> None:
        """Not of interest."""

    def on_closed(self, reason: str) -> None:
        """Not of interest."""


async def _listen(host: str, port: int) -> None:
    listener = await AsyncioTransport().listen(host, port, lambda _: _Nobody())
    await listener.close()


async def _reach(host: str, port: int) -> None:
    def accept(_: Connection) -> _Nobody:
        return _Nobody()

    connection = await AsyncioTransport().connect(host, port, accept, timeout_ms=REACH_TIMEOUT_MS)
    connection.abort()
    # the transport reports the end of a connection in the next turn of the loop
    await asyncio.sleep(0)
