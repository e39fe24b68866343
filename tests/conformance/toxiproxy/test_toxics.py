"""What each toxic does to bytes and to the close of a connection, with bounds on both sides.

The rules: docs/reference/toxiproxy.md "Connections", "Toxics".
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.proxy.harness import Upstream, connect, echo, is_silent, receive, round_trip_ms
from tests.conformance.toxiproxy.conftest import Backend

pytestmark = pytest.mark.timeout(20)

#: How late a timer may be on a busy machine.
SLACK_MS = 120


@pytest.fixture
def through(backend: Backend) -> Iterator[int]:
    """The port of a proxy ``p`` to an echo."""
    with Upstream(echo) as upstream:
        yield backend.api.create("p", upstream.port)


def elapsed_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_latency_delays_bytes_not_the_connect(backend: Backend, through: int, stream: str) -> None:
    """A chunk is late by the latency; connecting is not."""
    backend.api.toxic("p", "latency", stream, latency=100)
    started = time.perf_counter()
    with connect(through) as client:
        assert elapsed_ms(started) < 90
        assert 99 <= round_trip_ms(client) <= 100 + SLACK_MS


def test_latency_is_pipelined(backend: Backend, through: int) -> None:
    """A transfer of many chunks is late once, not once per chunk."""
    backend.api.toxic("p", "latency", latency=100)
    with connect(through) as client:
        sender = threading.Thread(target=client.sendall, args=(bytes(2_000_000),))
        started = time.perf_counter()
        sender.start()
        assert len(receive(client, 2_000_000)) == 2_000_000
        assert 99 <= elapsed_ms(started) <= 100 + 3 * SLACK_MS
        sender.join()


def test_jitter_spreads_around_the_latency(backend: Backend, through: int) -> None:
    """Delays lie in latency +- jitter and differ."""
    backend.api.toxic("p", "latency", latency=30, jitter=20)
    with connect(through) as client:
        delays = [round_trip_ms(client) for _ in range(12)]
    assert min(delays) >= 9
    assert min(delays) < 30 < max(delays)
    assert sorted(delays)[6] <= 50 + SLACK_MS


def test_bandwidth_holds_the_rate(backend: Backend, through: int) -> None:
    """300 000 bytes at 1000 KB/s take 300 ms; KB means 1000 bytes."""
    backend.api.toxic("p", "bandwidth", rate=1000)
    with connect(through) as client:
        sender = threading.Thread(target=client.sendall, args=(bytes(300_000),))
        started = time.perf_counter()
        sender.start()
        assert len(receive(client, 300_000)) == 300_000
        assert 280 <= elapsed_ms(started) <= 300 + 2 * SLACK_MS
        sender.join()


def test_bandwidth_sends_large_chunks_in_pieces(backend: Backend, through: int) -> None:
    """At 50 KB/s the first bytes of a 20 000 byte chunk come after 100 ms, not after 400."""
    backend.api.toxic("p", "bandwidth", rate=50)
    with connect(through) as client:
        started = time.perf_counter()
        client.sendall(bytes(20_000))
        assert len(receive(client, 1)) == 1
        assert 80 <= elapsed_ms(started) <= 100 + SLACK_MS
        assert len(receive(client, 19_999)) == 19_999
        assert 380 <= elapsed_ms(started) <= 400 + 2 * SLACK_MS


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_bandwidth_zero_is_the_lossless_cut(backend: Backend, through: int, stream: str) -> None:
    """Rate 0 holds everything and keeps the connection; all of it arrives when the toxic goes."""
    with connect(through) as client:
        round_trip_ms(client)
        toxic = backend.api.toxic("p", "bandwidth", stream, rate=0)
        client.sendall(b"held")
        assert is_silent(client, 0.2)
        backend.api.remove("p", toxic)
        assert receive(client, 4) == b"held"
        round_trip_ms(client)


def test_slow_close_delays_only_the_close(backend: Backend) -> None:
    """Data is not late; the end is, by the delay."""

    def greet(connection: socket.socket) -> None:
        connection.sendall(b"hello")
        connection.close()

    with Upstream(greet) as upstream:
        port = backend.api.create("p", upstream.port)
        backend.api.toxic("p", "slow_close", delay=200)
        started = time.perf_counter()
        with connect(port) as client:
            assert receive(client, 5) == b"hello"
            assert elapsed_ms(started) < 150
            assert client.recv(1) == b""
            assert 199 <= elapsed_ms(started) <= 200 + SLACK_MS


def test_timeout_drops_and_closes_when_idle(backend: Backend, through: int) -> None:
    """Nothing passes; after the time without data the connection closes."""
    backend.api.toxic("p", "timeout", timeout=200)
    started = time.perf_counter()
    with connect(through) as client:
        assert client.recv(1) == b""
        assert 190 <= elapsed_ms(started) <= 200 + SLACK_MS


def test_timeout_starts_again_with_every_chunk(backend: Backend, through: int) -> None:
    """Chatter more often than the timeout keeps the connection open; nothing of it passes."""
    backend.api.toxic("p", "timeout", timeout=250)
    with connect(through) as client:
        for _ in range(4):
            client.sendall(b"x")
            assert is_silent(client, 0.1)
        assert client.recv(1) == b""


def test_timeout_zero_is_the_lossy_cut(backend: Backend, through: int) -> None:
    """Timeout 0 drops forever and stays open; removing it closes the connections there are."""
    with connect(through) as client:
        round_trip_ms(client)
        toxic = backend.api.toxic("p", "timeout", timeout=0)
        client.sendall(b"lost")
        assert is_silent(client, 0.2)
        backend.api.remove("p", toxic)
        assert client.recv(1) == b""
    with connect(through) as client:
        round_trip_ms(client)


def test_removing_timeout_closes_spared_connections_too(backend: Backend, through: int) -> None:
    """Also a connection that the toxicity left alone is closed when the toxic goes."""
    with connect(through) as client:
        toxic = backend.api.toxic("p", "timeout", toxicity=0, timeout=0)
        round_trip_ms(client)
        backend.api.remove("p", toxic)
        assert client.recv(1) == b""


def test_reset_peer_resets_at_the_first_byte(backend: Backend, through: int) -> None:
    """An idle connection is untouched; the first byte starts the wait, then comes a RST."""
    backend.api.toxic("p", "reset_peer", timeout=100)
    with connect(through) as client:
        assert is_silent(client, 0.1)
        started = time.perf_counter()
        client.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert 95 <= elapsed_ms(started) <= 100 + SLACK_MS


def test_slicer_cuts_and_delays(backend: Backend, through: int) -> None:
    """60 bytes at about 10 with 20 ms after each slice: all bytes, in order, in several parts, over 80 ms or more."""
    backend.api.toxic("p", "slicer", average_size=10, size_variation=3, delay=20_000)
    message = bytes(range(60))
    with connect(through) as client:
        started = time.perf_counter()
        client.sendall(message)
        parts: list[bytes] = []
        while sum(len(part) for part in parts) < 60:
            parts.append(client.recv(100))
        assert 60 <= elapsed_ms(started) <= 200 + SLACK_MS
    assert b"".join(parts) == message
    assert len(parts) >= 4
    assert max(len(part) for part in parts) <= 26


def test_limit_data_passes_exactly_so_many_bytes(backend: Backend, through: int) -> None:
    """The bytes up to the limit, not one more, then the end; every connection has its own count."""
    backend.api.toxic("p", "limit_data", bytes=10)
    for _ in range(2):
        with connect(through) as client:
            client.sendall(b"0123456789abcdef")
            received = bytearray()
            with contextlib.suppress(ConnectionResetError):
                while part := client.recv(100):
                    received += part
            assert received == b"0123456789"


def test_limit_data_count_survives_updates(backend: Backend, through: int) -> None:
    """An update changes the limit, not what has passed already."""
    toxic = backend.api.toxic("p", "limit_data", bytes=10)
    with connect(through) as client:
        round_trip_ms(client, b"12345678")
        backend.api.ok("POST", f"/proxies/p/toxics/{toxic}", {"attributes": {"bytes": 12}})
        client.sendall(b"abcdefgh")
        assert receive(client, 100) == b"abcd"


def test_limit_data_zero_closes_at_the_first_chunk(backend: Backend, through: int) -> None:
    """With 0 an idle connection stays until a byte comes."""
    backend.api.toxic("p", "limit_data", bytes=0)
    with connect(through) as client:
        assert is_silent(client, 0.1)
        client.sendall(b"x")
        assert client.recv(1) == b""


def test_noop_passes_everything(backend: Backend, through: int) -> None:
    """The toxic noop neither changes nor delays bytes."""
    backend.api.toxic("p", "noop")
    with connect(through) as client:
        assert round_trip_ms(client, b"anything") < SLACK_MS


def test_toxicity_is_decided_per_connection(backend: Backend, through: int) -> None:
    """With 0.5 some connections are slow and some are not, and one connection does not change its mind."""
    backend.api.toxic("p", "latency", toxicity=0.5, latency=150)
    slow = 0
    for _ in range(16):
        with connect(through) as client:
            trips = [round_trip_ms(client) >= 149 for _ in range(2)]
            assert trips[0] == trips[1]
            slow += trips[0]
    assert 1 <= slow <= 15


def test_update_takes_effect_on_live_connections(backend: Backend, through: int) -> None:
    """An update changes the connections there are."""
    toxic = backend.api.toxic("p", "latency", latency=500)
    with connect(through) as client:
        backend.api.ok("POST", f"/proxies/p/toxics/{toxic}", {"attributes": {"latency": 50}})
        assert 49 <= round_trip_ms(client) <= 50 + SLACK_MS


def test_toxics_of_a_stream_add_up(backend: Backend, through: int) -> None:
    """Bytes pass through all toxics of their stream, one after the other, and through both streams of an echo."""
    backend.api.ok("POST", "/proxies/p/toxics", {"type": "latency", "name": "a", "attributes": {"latency": 40}})
    backend.api.ok("POST", "/proxies/p/toxics", {"type": "slicer", "attributes": {"average_size": 2, "delay": 20_000}})
    backend.api.toxic("p", "latency", "upstream", latency=40)
    with connect(through) as client:
        assert 95 <= round_trip_ms(client, b"abcd") <= 140 + SLACK_MS


def test_no_byte_is_lost_when_toxics_come_and_go(backend: Backend, through: int) -> None:
    """2 MB arrive whole and in order though toxics are added, updated and removed meanwhile."""
    message = b"".join(index.to_bytes(4, "big") for index in range(500_000))
    with connect(through) as client:
        sender = threading.Thread(target=client.sendall, args=(message,))
        received: list[bytes] = []
        reader = threading.Thread(target=lambda: received.append(receive(client, len(message))))
        reader.start()
        sender.start()
        for latency in (5, 1, 9):
            for stream in ("upstream", "downstream"):
                names = [
                    backend.api.toxic("p", "latency", stream, latency=latency),
                    backend.api.toxic("p", "bandwidth", stream, rate=20_000),
                    backend.api.toxic("p", "slicer", stream, average_size=1500, size_variation=200),
                ]
                backend.api.ok("POST", f"/proxies/p/toxics/{names[0]}", {"attributes": {"jitter": 3}})
                for name in names:
                    backend.api.remove("p", name)
        sender.join()
        reader.join()
    assert received[0] == message
