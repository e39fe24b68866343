"""Where our server goes beyond Toxiproxy: docs/proxy.md lists these as differences."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from chaos.proxy.stats import LagMonitor
from tests.chaos.proxy.harness import (
    HOST,
    Api,
    Upstream,
    connect,
    echo,
    is_silent,
    our_server,
    receive,
    round_trip_ms,
    wait_until,
)
from tests.chaos.proxy.virtual_loop import VirtualLoop, run_virtual

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def api() -> Iterator[Api]:
    with our_server(seed=5, dial_timeout_ms=300) as server:
        yield server


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream(echo) as server:
        yield server


# --- randomness


def decisions(seed: int, upstream_port: int) -> list[bool]:
    """Whom a toxicity of one half chose among 16 connections."""
    with our_server(seed) as api, contextlib.ExitStack() as stack:
        port = api.create("p", upstream_port)
        api.toxic("p", "latency", toxicity=0.5)
        for _ in range(16):
            round_trip_ms(stack.enter_context(connect(port)))
        connections = api.ok("GET", "/proxies/p/connections")
        return [connection["streams"]["downstream"]["toxics"] != [] for connection in connections]


def test_toxicity_repeats_with_the_seed(upstream: Upstream) -> None:
    """The same seed chooses the same connections, by their index; another seed chooses others."""
    first, again, other = (decisions(seed, upstream.port) for seed in (5, 5, 6))
    assert first == again != other
    assert 0 < sum(first) < 16


# --- resets


def test_reset_reaches_connections_older_than_the_toxic(api: Api) -> None:
    """A connection that was open before the toxic gets a RST as well, and so does its upstream."""
    ends: queue.Queue[type[BaseException] | None] = queue.Queue()

    def watch(connection: socket.socket) -> None:
        try:
            while connection.recv(100):
                connection.sendall(b"x")
            ends.put(None)
        except OSError as error:
            ends.put(type(error))

    with Upstream(watch) as upstream, connect(api.create("p", upstream.port)) as client:
        client.sendall(b"1")
        assert client.recv(1) == b"x"
        api.toxic("p", "reset_peer")
        client.sendall(b"2")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert ends.get(timeout=5) is ConnectionResetError


# --- dials


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port that answers no connect: its queue of connections is full and stays so."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex((HOST, port))
        time.sleep(0.05)
        yield port


def test_a_black_hole_blocks_nobody_else(api: Api) -> None:
    """Dials run beside each other and end by their timeout: each client sees its end after one, not after all."""
    with black_hole() as port, contextlib.ExitStack() as stack:
        listen = api.create("p", port)
        started = time.monotonic()
        clients = [stack.enter_context(connect(listen)) for _ in range(4)]
        assert [connection["state"] for connection in api.ok("GET", "/proxies/p/connections")] == ["dialing"] * 4
        for client in clients:
            assert client.recv(1) == b""
        assert 0.25 <= time.monotonic() - started <= 0.8
        assert api.ok("GET", "/gapless/stats/p")["connections"]["dial_failed"] == 4


def test_a_dial_can_be_called_off(api: Api) -> None:
    """Deleting a proxy does not wait for its dials."""
    with black_hole() as port, connect(api.create("p", port)) as client:
        wait_until(lambda: len(api.ok("GET", "/proxies/p/connections")) == 1, "the connection is dialing")
        started = time.monotonic()
        api.call("DELETE", "/proxies/p")
        assert time.monotonic() - started < 0.2
        assert client.recv(1) == b""


# --- ports


def test_a_stopped_proxy_keeps_its_port(api: Api, upstream: Upstream) -> None:
    """Nobody can take the port by chance, so that enabling cannot fail; connects are refused."""
    port = api.create("p", upstream.port)
    api.ok("POST", "/proxies/p", {"enabled": False})
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    api.ok("POST", "/proxies/p", {"enabled": True})
    with connect(port) as client:
        round_trip_ms(client)


def test_another_proxy_may_take_the_port_of_a_stopped_one(api: Api, upstream: Upstream) -> None:
    """As with Toxiproxy: only a listener is in the way. Enabling the first one then fails."""
    port = api.create("p", upstream.port)
    api.ok("POST", "/proxies/p", {"enabled": False})
    assert api.create("q", upstream.port, listen=f"{HOST}:{port}") == port
    assert api.call("POST", "/proxies/p", {"enabled": True}).status == 500
    api.ok("DELETE", "/proxies/q")
    api.ok("POST", "/proxies/p", {"enabled": True})


def test_the_listener_stays_while_the_upstream_changes(api: Api, upstream: Upstream) -> None:
    """Between the old and the new upstream no connect is refused."""
    port = api.create("p", 1)
    for target in (upstream.port, 1, upstream.port):
        api.ok("POST", "/proxies/p", {"upstream": f"{HOST}:{target}"})
        connect(port).close()


# --- validation


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"type": "noop", "toxicity": 1.5}, "toxicity was invalid, must be between 0 and 1"),
        ({"type": "noop", "toxicity": -0.1}, "toxicity was invalid, must be between 0 and 1"),
        ({"type": "slicer"}, "average_size was invalid, must be at least 1"),
        (
            {"type": "slicer", "attributes": {"average_size": 5, "size_variation": -1}},
            "size_variation was invalid, must not be negative",
        ),
        ({"type": "noop", "name": "a/b"}, "name was invalid, must not contain a slash"),
        (
            {"type": "stall", "attributes": {"probability_permille": 1001}},
            "probability_permille was invalid, must be between 0 and 1000",
        ),
        (
            {"type": "stall", "attributes": {"min_ms": 2, "max_ms": 1}},
            "min_ms and max_ms were invalid, must be 0 <= min_ms <= max_ms",
        ),
    ],
)
def test_values_that_make_no_sense_are_refused(api: Api, body: dict[str, object], text: str) -> None:
    """400 with a clear text, and no toxic is made."""
    api.create("p", 1)
    answer = api.call("POST", "/proxies/p/toxics", body)
    assert (answer.status, answer.json()["error"]) == (400, text)
    assert api.ok("GET", "/proxies/p/toxics") == []


def test_a_refused_update_changes_nothing(api: Api) -> None:
    """Neither the good nor the bad part of an update is kept."""
    api.create("p", 1)
    api.toxic("p", "slicer", average_size=5)
    answer = api.call("POST", "/proxies/p/toxics/slicer_downstream", {"attributes": {"average_size": 0, "delay": 9}})
    assert answer.status == 400
    toxic = api.ok("GET", "/proxies/p/toxics/slicer_downstream")
    assert toxic["attributes"] == {"average_size": 5, "size_variation": 0, "delay": 0}


# --- stall


def test_stall_holds_chunks(api: Api, upstream: Upstream) -> None:
    """With a probability of 1 every chunk waits between min and max; with 0 none does."""
    port = api.create("p", upstream.port)
    toxic = api.toxic("p", "stall", probability_permille=1000, min_ms=40, max_ms=60)
    with connect(port) as client:
        assert 39 <= round_trip_ms(client) <= 180
        api.ok("POST", f"/proxies/p/toxics/{toxic}", {"attributes": {"probability_permille": 0}})
        assert round_trip_ms(client) < 39


# --- cuts


def test_a_pause_holds_the_end_too(api: Api, upstream: Upstream) -> None:
    """With bandwidth 0 the other side does not learn of a close either, as when a network is cut."""
    port = api.create("p", upstream.port)
    with Upstream(lambda connection: connection.close()) as closing:
        toxic = api.toxic("p", "bandwidth", rate=0)
        api.ok("POST", "/proxies/p", {"upstream": f"{HOST}:{closing.port}"})
        with connect(port) as client:
            assert is_silent(client, 0.15)
            api.remove("p", toxic)
            assert client.recv(1) == b""


def test_nothing_leaks_through_a_pause_when_toxics_change(api: Api, upstream: Upstream) -> None:
    """Adding, updating and removing other toxics lets no held byte out."""
    port = api.create("p", upstream.port)
    with connect(port) as client:
        round_trip_ms(client)
        cut = api.toxic("p", "bandwidth", rate=0)
        client.sendall(b"held")
        wait_until(lambda: streams(api)["downstream"]["bytes_held"] == 4, "the bytes are held")
        other = api.toxic("p", "latency", latency=1)
        api.ok("POST", f"/proxies/p/toxics/{cut}", {"attributes": {"rate": 0}})
        api.remove("p", other)
        assert is_silent(client, 0.1)
        api.remove("p", cut)
        assert receive(client, 4) == b"held"


# --- statistics


def streams(api: Api) -> dict[str, dict[str, int]]:
    result: dict[str, dict[str, int]] = api.ok("GET", "/gapless/stats/p")["streams"]
    return result


def test_bytes_are_counted_live_and_after_the_end(api: Api, upstream: Upstream) -> None:
    """Both directions of a live connection, and the sums when it is gone."""
    port = api.create("p", upstream.port)
    with connect(port) as client:
        round_trip_ms(client, b"12345")
        counted = streams(api)
        assert [counted[name]["bytes_in"] for name in ("upstream", "downstream")] == [5, 5]
        assert [counted[name]["bytes_out"] for name in ("upstream", "downstream")] == [5, 5]
        live = api.ok("GET", "/proxies/p/connections")[0]
        assert (live["index"], live["state"]) == (0, "open")
        assert live["client"] == f"{HOST}:{client.getsockname()[1]}"
        assert live["streams"]["upstream"]["bytes_in"] == 5
    wait_until(lambda: api.ok("GET", "/gapless/stats/p")["connections"]["active"] == 0, "the connection is gone")
    assert api.ok("GET", "/proxies/p/connections") == []
    assert streams(api)["upstream"]["bytes_out"] == 5


def test_dropped_bytes_are_counted(api: Api, upstream: Upstream) -> None:
    """A lossy cut says how much it swallowed."""
    port = api.create("p", upstream.port)
    with connect(port) as client:
        round_trip_ms(client)
        api.toxic("p", "timeout", timeout=0)
        client.sendall(b"1234567")
        wait_until(lambda: streams(api)["downstream"]["bytes_dropped"] == 7, "the bytes are dropped")
        assert streams(api)["upstream"]["bytes_dropped"] == 0


def test_server_statistics(api: Api) -> None:
    """Seed, all proxies, and the loop's lag, whose window starts over with every reading."""
    api.create("p", 1)
    stats = api.ok("GET", "/gapless/stats")
    assert stats["seed"] == 5
    assert list(stats["proxies"]) == ["p"]
    lag = stats["event_loop_lag"]
    assert 0 <= lag["max_since_last_read_ms"] <= lag["max_ms"]
    assert api.call("GET", "/gapless/stats/none").status == 404


def test_lag_is_how_late_timers_run() -> None:
    """A loop that stands still for half a second shows it once in the window and forever in the maximum."""

    async def scenario() -> tuple[dict[str, float], dict[str, float]]:
        lag = LagMonitor()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.jumping.now += 0.5
        await asyncio.sleep(0.2)
        first = lag.read()
        await asyncio.sleep(0.2)
        second = lag.read()
        lag.stop()
        return first, second

    first, second = run_virtual(scenario())
    assert 400 <= first["max_since_last_read_ms"] <= 500
    assert second["max_since_last_read_ms"] < 1
    assert second["max_ms"] == first["max_ms"]


def test_a_closed_client_leaves_nothing_behind(api: Api, upstream: Upstream) -> None:
    """Orderly closes and resets from the client free the upstream connection as well."""
    port = api.create("p", upstream.port)
    for linger in (None, struct.pack("ii", 1, 0)):
        client = connect(port)
        round_trip_ms(client)
        if linger:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.close()
    wait_until(lambda: api.ok("GET", "/gapless/stats/p")["connections"]["active"] == 0, "both are gone")
