"""A real ZooKeeper, from pyspark's jars."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from cluster.metadata.kazoo_connection import make_client
from cluster.process import zookeeper
from cluster.process.java import find_java
from cluster.process.supervisor import Supervisor
from cluster.process.zookeeper import ZooKeeperFailure, restart_zookeeper, serves, start_zookeeper
from tests.support.require import require

pytestmark = pytest.mark.integration


def ask(port: int, word: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def test_zookeeper_serves_on_loopback_alone(tmp_path: Path) -> None:
    """It answers when it is handed over, listens on one port of 127.0.0.1, and keeps everything in its directory."""
    require("java")
    with Supervisor(str(tmp_path)) as supervisor:
        handle = start_zookeeper(supervisor, str(tmp_path / "zookeeper"), find_java())
        assert ask(handle.port, b"ruok") == "imok"
        assert "Mode: standalone" in ask(handle.port, b"srvr")
        assert "not in the whitelist" in ask(handle.port, b"envi")
        listening = [
            (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
            for connection in psutil.Process(handle.child.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert listening == [(handle.host, handle.port)]
        assert handle.address == f"127.0.0.1:{handle.port}"
        assert os.path.isdir(tmp_path / "zookeeper" / "data" / "version-2")
    assert handle.child.exit_code is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((handle.host, handle.port))
    assert not list(Path(tempfile.gettempdir()).glob(f"hsperfdata_*/{handle.child.pid}"))
    assert "ERROR" not in (tmp_path / "zookeeper" / "zookeeper.log").read_text()


def test_a_killed_server_comes_back_on_its_port_with_its_data(tmp_path: Path) -> None:
    """What was written is there again, sessions too, and the brokers' client finds it where it was."""
    require("java")
    with Supervisor(str(tmp_path)) as supervisor:
        directory, java = str(tmp_path / "zookeeper"), find_java()
        handle = start_zookeeper(supervisor, directory, java)
        # Not kazoo's own: see ``HANDSHAKES_PER_SESSION`` for what a server that is starting does to it.
        client = make_client(handle.address, 20_000, lambda session_id, timeout_ms: None, lambda: None, lambda: True)
        client.start(timeout=20)
        session, _ = client.client_id
        client.create("/kept", b"value", ephemeral=True)
        handle.child.kill()
        assert not serves(handle.port, 0.5)
        # Somebody's outgoing connection may have been given the port meanwhile; it is waited for.
        taker = socket.create_server(("127.0.0.1", handle.port))
        release = threading.Timer(1.0, taker.close)
        release.start()
        again = restart_zookeeper(supervisor, handle, directory, java)
        release.join()
        assert (again.port, again.child.is_running()) == (handle.port, True)
        assert client.retry(client.get, "/kept")[0] == b"value"
        assert client.client_id[0] == session
        client.stop()
        client.close()


def test_a_taken_port_is_given_up_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If somebody else has the port after all, another is tried."""
    require("java")
    reserve = zookeeper.hold_port
    takers: list[socket.socket] = []

    def stolen() -> socket.socket:
        holder = reserve()
        if not takers:
            takers.append(socket.create_server(("127.0.0.1", holder.getsockname()[1]), reuse_port=False))
        return holder

    monkeypatch.setattr(zookeeper, "hold_port", stolen)
    with Supervisor(str(tmp_path)) as supervisor:
        handle = start_zookeeper(supervisor, str(tmp_path / "zookeeper"), find_java())
        assert handle.port != takers[0].getsockname()[1]
        assert ask(handle.port, b"ruok") == "imok"
        assert [child.is_running() for child in supervisor.children] == [False, True]
    takers[0].close()


def test_a_server_that_cannot_start_names_its_log(tmp_path: Path) -> None:
    """Whatever else goes wrong ends in one line that says where to look."""
    require("java")
    directory = tmp_path / "zookeeper"
    directory.mkdir()
    (directory / "data").write_text("not a directory")
    with Supervisor(str(tmp_path)) as supervisor:
        with pytest.raises(ZooKeeperFailure, match=r"ended with exit status \d+; its log is .*zookeeper\.log"):
            start_zookeeper(supervisor, str(directory), find_java())
