"""Proxies that are created, disabled, changed, populated and deleted while connections are open.

The rules: docs/reference/toxiproxy.md "Proxies", "Connections".
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.proxy.harness import HOST, Upstream, connect, echo, is_silent, receive, round_trip_ms, wait_until
from tests.conformance.toxiproxy.conftest import Backend

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream(echo) as server:
        yield server


def ended(client: socket.socket) -> bool:
    """Whether the connection ends, orderly or not, without another byte."""
    with contextlib.suppress(ConnectionResetError):
        return client.recv(1) == b""
    return True


def test_bytes_pass_untouched(backend: Backend, upstream: Upstream) -> None:
    """Without toxics, everything sent comes back as it was."""
    port = backend.api.create("p", upstream.port)
    message = bytes(range(256)) * 8192
    with connect(port) as client:
        sender = threading.Thread(target=client.sendall, args=(message,))
        sender.start()
        assert receive(client, len(message)) == message
        sender.join()


def test_a_slow_reader_holds_the_sender_back(backend: Backend) -> None:
    """Who does not read stops who sends: the proxy does not take bytes without end."""
    release = threading.Event()

    def refuse_to_read(connection: socket.socket) -> None:
        release.wait(10)
        while connection.recv(1 << 20):
            pass

    with Upstream(refuse_to_read) as server, connect(backend.api.create("p", server.port)) as client:
        client.setblocking(False)
        sent, stuck_since = 0, time.monotonic()
        while time.monotonic() - stuck_since < 0.3 and sent < 64_000_000:
            try:
                sent += client.send(bytes(65536))
                stuck_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        release.set()
        assert sent < 64_000_000


def test_disable_drops_and_refuses_enable_restores(backend: Backend, upstream: Upstream) -> None:
    """Disabled: connections end, new ones are refused, toxics stay. Enabled: the same port serves again."""
    port = backend.api.create("p", upstream.port)
    backend.api.toxic("p", "latency", latency=40)
    with connect(port) as client:
        round_trip_ms(client)
        backend.api.ok("POST", "/proxies/p", {"enabled": False})
        assert ended(client)
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    state = backend.api.ok("POST", "/proxies/p", {"enabled": True})
    assert state["listen"] == f"{HOST}:{port}"
    with connect(port) as client:
        assert round_trip_ms(client) >= 39


def test_delete_ends_connections_and_forgets(backend: Backend, upstream: Upstream) -> None:
    """A deleted proxy is gone with its connections and toxics; its name is free again."""
    port = backend.api.create("p", upstream.port)
    backend.api.toxic("p", "noop")
    with connect(port) as client:
        round_trip_ms(client)
        assert backend.api.call("DELETE", "/proxies/p").status == 204
        assert ended(client)
    backend.api.create("p", upstream.port)
    assert backend.api.ok("GET", "/proxies/p/toxics") == []


def test_a_new_upstream_drops_connections_and_keeps_toxics(backend: Backend, upstream: Upstream) -> None:
    """New connections go to the new upstream, old ones end, toxics stay."""

    def greet(connection: socket.socket) -> None:
        connection.sendall(b"other")

    port = backend.api.create("p", upstream.port)
    backend.api.toxic("p", "noop")
    with Upstream(greet) as other, connect(port) as client:
        round_trip_ms(client)
        state = backend.api.ok("POST", "/proxies/p", {"upstream": f"{HOST}:{other.port}"})
        assert (state["enabled"], len(state["toxics"])) == (True, 1)
        assert ended(client)
        with connect(port) as client:
            assert receive(client, 5) == b"other"


def test_same_values_change_nothing(backend: Backend, upstream: Upstream) -> None:
    """An update to what it is already keeps the connections."""
    port = backend.api.create("p", upstream.port)
    with connect(port) as client:
        round_trip_ms(client)
        same = {"listen": f"localhost:{port}", "upstream": f"{HOST}:{upstream.port}", "enabled": True}
        backend.api.ok("POST", "/proxies/p", same)
        round_trip_ms(client)


def test_populate_keeps_equal_proxies_with_their_connections(backend: Backend, upstream: Upstream) -> None:
    """The same listen and upstream: connections and toxics stay; another upstream: both are gone."""
    port = backend.api.create("p", upstream.port)
    backend.api.toxic("p", "noop")
    entry = {"name": "p", "listen": f"{HOST}:{port}", "upstream": f"{HOST}:{upstream.port}"}
    with connect(port) as client:
        round_trip_ms(client)
        backend.api.ok("POST", "/populate", [entry])
        round_trip_ms(client)
        replaced = backend.api.ok("POST", "/populate", [entry | {"upstream": f"localhost:{upstream.port}"}])
        assert replaced["proxies"][0]["toxics"] == []
        assert ended(client)
    with connect(port) as client:
        round_trip_ms(client)


def test_reset_enables_and_removes_toxics(backend: Backend, upstream: Upstream) -> None:
    """After a reset every proxy serves and none has a toxic."""
    port = backend.api.create("p", upstream.port)
    backend.api.toxic("p", "bandwidth", rate=0)
    backend.api.ok("POST", "/proxies/p", {"enabled": False})
    assert backend.api.call("POST", "/reset").status == 204
    with connect(port) as client:
        round_trip_ms(client)


def test_half_close_is_not_kept(backend: Backend) -> None:
    """Who ends its side loses the reply: the end closes both directions."""

    def reply_after_end(connection: socket.socket) -> None:
        received = receive(connection, 1 << 20)
        time.sleep(0.05)
        connection.sendall(received)

    with Upstream(reply_after_end) as server, connect(backend.api.create("p", server.port)) as client:
        client.sendall(b"hello")
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


def test_bytes_before_the_end_are_delivered(backend: Backend) -> None:
    """Everything sent before a close arrives before it."""
    received: list[bytes] = []

    def keep(connection: socket.socket) -> None:
        received.append(receive(connection, 1 << 30))

    with Upstream(keep) as server:
        port = backend.api.create("p", server.port)
        backend.api.toxic("p", "latency", "upstream", latency=30)
        with connect(port) as client:
            client.sendall(bytes(1_000_000))
        wait_until(lambda: bool(received), "the upstream saw the end")
    assert len(received[0]) == 1_000_000


def test_a_dead_upstream_accepts_then_ends(backend: Backend) -> None:
    """The client connects well and then sees the end."""
    with socket.create_server((HOST, 0)) as unused:
        dead_port = unused.getsockname()[1]
    with connect(backend.api.create("p", dead_port)) as client:
        assert client.recv(1) == b""


def test_an_end_from_the_upstream_reaches_the_client(backend: Backend) -> None:
    """When the upstream closes, the client sees the bytes and the end."""

    def say_goodbye(connection: socket.socket) -> None:
        connection.sendall(b"bye")
        connection.close()

    with Upstream(say_goodbye) as server, connect(backend.api.create("p", server.port)) as client:
        assert receive(client, 10) == b"bye"


def test_a_reset_of_the_client_ends_the_upstream(backend: Backend) -> None:
    """A client that resets does not leave its upstream connection behind."""
    ends: list[bool] = []

    def watch(connection: socket.socket) -> None:
        ends.append(ended(connection))

    with Upstream(watch) as server:
        port = backend.api.create("p", server.port)
        client = connect(port)
        assert is_silent(client, 0.05)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        wait_until(lambda: ends == [True], "the upstream saw the end")


def test_toxics_can_be_added_while_disabled(backend: Backend, upstream: Upstream) -> None:
    """A toxic on a stopped proxy is there when it starts."""
    port = backend.api.create("p", upstream.port)
    backend.api.ok("POST", "/proxies/p", {"enabled": False})
    backend.api.toxic("p", "latency", latency=40)
    backend.api.ok("POST", "/proxies/p", {"enabled": True})
    with connect(port) as client:
        assert round_trip_ms(client) >= 39
