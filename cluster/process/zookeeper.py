"""A ZooKeeper server of our own, from the jars that pyspark ships.

Owns its configuration, its start and the wait until it answers. Does not own what is stored in it.
"""

from __future__ import annotations

import glob
import logging
import os
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec

from cluster.process.handle import Child
from cluster.process.held_port import HOST, hold_port, port_of
from cluster.process.java import JavaHome
from cluster.process.processes import until
from cluster.process.supervisor import Supervisor

logger = logging.getLogger(__name__)

#: So that a session of 2 s is possible: ZooKeeper rounds it to ticks and allows no less than two of them.
TICK_MS = 200
_LONGEST_SESSION_MS = 60_000
_START_S = 60.0
_ATTEMPTS = 5
_PROBE_S = 1.0

#: Jars by the stem of their name: versions move with pyspark.
_JARS = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "log4j-api",
    "log4j-slf4j2-impl",
    "netty-*",
    "metrics-core",
    "snappy-java",
    "commons-io",
)

_SIMPLE_LOG = "-Dorg.apache.logging.log4j.simplelog"
#: log4j's own simple logger, to standard error: its full one is a quarter of the CPU that a start takes.
_LOGGING = (
    "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
    f"{_SIMPLE_LOG}.level=warn",
    f"{_SIMPLE_LOG}.showdatetime=true",
    f"{_SIMPLE_LOG}.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
    # A client that asks while the data is being loaded (we do, until it serves) makes it log a null pointer error.
    f"{_SIMPLE_LOG}.org.apache.zookeeper.server.ServerCnxn.level=off",
)


class ZooKeeperFailure(Exception):
    """The server did not come up; the text names its log."""


@dataclass(frozen=True, slots=True)
class ZooKeeperHandle:
    """A running server."""

    host: str
    port: int
    child: Child

    @property
    def address(self) -> str:
        """``host:port``, as ``zookeeper.connect`` has it."""
        return f"{self.host}:{self.port}"


def start_zookeeper(supervisor: Supervisor, directory: str, java: JavaHome, tick_ms: int = TICK_MS) -> ZooKeeperHandle:
    """Start a standalone server on loopback with its data, configuration and log in ``directory``.

    ZooKeeper reads port 0 as "no port", so a free one is found by binding it; the server takes it over (see
    ``hold_port``), and should another process have it in the end, another is tried. Returns when the server serves.
    Raises ZooKeeperFailure.
    """
    os.makedirs(os.path.join(directory, "tmp"), exist_ok=True)
    for _attempt in range(_ATTEMPTS):
        with hold_port() as reserved:
            port = port_of(reserved)
            _write_configuration(directory, port, tick_ms)
            child = _launch(supervisor, directory, java, port)
        if child is not None:
            return ZooKeeperHandle(HOST, port, child)
        logger.info("port %d was taken by another process; trying another", port)
    raise ZooKeeperFailure(f"ZooKeeper found no free port in {_ATTEMPTS} attempts; its log is {_log_path(directory)}")


def restart_zookeeper(
    supervisor: Supervisor, handle: ZooKeeperHandle, directory: str, java: JavaHome
) -> ZooKeeperHandle:
    """Start an ended server again, as it was configured: on its data and its port. Raises ZooKeeperFailure.

    Meanwhile someone's outgoing connection may have been given the port; it is waited for.
    """
    child: Child | None = None

    def launched() -> bool:
        nonlocal child
        with suppress(OSError), hold_port(handle.port):
            child = _launch(supervisor, directory, java, handle.port)
        return child is not None

    if not until(launched, _START_S) or child is None:
        raise ZooKeeperFailure(f"port {handle.port} is still in use; ZooKeeper's log is {_log_path(directory)}")
    return replace(handle, child=child)


def _launch(supervisor: Supervisor, directory: str, java: JavaHome, port: int) -> Child | None:
    """Start the configured server and wait until it serves; None if another process has its port. Raises
    ZooKeeperFailure."""
    log_path = _log_path(directory)
    said = os.path.getsize(log_path) if os.path.exists(log_path) else 0
    child = supervisor.start_program("zookeeper", _command(java), None, directory, log_path, service=True)
    served = until(lambda: serves(port) or not child.is_running(), _START_S)
    if child.is_running() and served:
        return child
    if child.is_running():
        child.kill()
        raise ZooKeeperFailure(f"ZooKeeper did not respond within {_START_S:.0f} s; its log is {log_path}")
    if not _port_was_taken(log_path, said):
        raise ZooKeeperFailure(f"ZooKeeper ended with exit status {child.exit_code}; its log is {log_path}")
    return None


def _log_path(directory: str) -> str:
    return os.path.join(directory, "zookeeper.log")


def _write_configuration(directory: str, port: int, tick_ms: int) -> None:
    settings = {
        "tickTime": tick_ms,
        "minSessionTimeout": 2 * tick_ms,
        # Its default of 20 ticks would cut Kafka's own 18 s down to 4.
        "maxSessionTimeout": _LONGEST_SESSION_MS,
        # It runs in ``directory``. Java reads this file as Latin-1: no path of ours, whatever its name, may stand here.
        "dataDir": "./data",
        "clientPort": port,
        "clientPortAddress": HOST,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr",
        # The file is written ahead in blocks of this many KB; 64 MB is too much for a run's directory.
        "preAllocSize": 1024,
        # What it wrote outlives its process, and that is all that faults kill; and a slow disk must not look like a
        # slow ensemble.
        "forceSync": "no",
    }
    with open(os.path.join(directory, "zoo.cfg"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())


def _command(java: JavaHome) -> list[str]:
    """To be run in the server's directory."""
    return [
        java.executable,
        "-Xmx96m",
        "-Xss512k",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        # Without it a killed JVM leaves a file in the system's temporary directory.
        "-XX:-UsePerfData",
        "-Djava.io.tmpdir=tmp",
        "-Djava.net.preferIPv4Stack=true",
        "-Dzookeeper.jmx.log4j.disable=true",
        *_LOGGING,
        "-cp",
        os.pathsep.join(_jars()),
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        "zoo.cfg",
    ]


def _jars() -> list[str]:
    """The class path. Raises ZooKeeperFailure if pyspark or a jar is missing; pyspark itself is not imported."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ZooKeeperFailure("pyspark, whose jars include ZooKeeper, is not installed; run 'make setup'")
    directory = os.path.join(spec.submodule_search_locations[0], "jars")
    found = []
    for stem in _JARS:
        matches = sorted(glob.glob(os.path.join(glob.escape(directory), f"{stem}-[0-9]*.jar")))
        if not matches:
            raise ZooKeeperFailure(f"there is no {stem} jar in {directory}; use another ZooKeeper with --zookeeper")
        found.extend(matches)
    return found


def serves(port: int, timeout_s: float = _PROBE_S) -> bool:
    """Whether a server answers there and takes requests: ``srvr`` names its mode only then."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while part := connection.recv(4096):
                answer += part
    except OSError:
        return False
    return b"Mode: " in answer


def _port_was_taken(log_path: str, said: int) -> bool:
    """Whether the log says so behind its first ``said`` bytes, which are those of an earlier start."""
    with open(log_path, "rb") as file:
        file.seek(said)
        return b"java.net.BindException" in file.read()
