"""Links against our server: what the conductor and the faults rely on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from chaos.links import (
    LinkConflict,
    Links,
)
from tests.chaos.proxy.harness import (
    HOST,
    Upstream,
    connect,
    is_silent,
    our_server,
    port_of,
    receive,
    round_trip_ms,
    wait_until,
)

pytestmark = pytest.mark.timeout(20)


# --- links


def test_create_show_and_delete(links: Links, upstream: Upstream) -> None:
    """A link listens on a port of its own, is clear, and is gone when deleted."""
    listen = links.create("producers-b1", f"{HOST}:{upstream.port}")
    state = links.show("producers-b1")
    assert (state.listen, state.enabled, state.clear) == (listen, True, True)
    with connect(port_of(listen)) as client:
        round_trip_ms(client)
    links.delete("producers-b1")
    assert links.all() == {}


def test_set_upstream_keeps_the_listen_address(links: Links, port: int, upstream: Upstream) -> None:
    """After a broker's restart the link leads to its new port, on the address that everyone knows."""
    links.set_upstream("b1-b2", f"{HOST}:1")
    with connect(port) as client:
        assert client.recv(1) == b""
    links.set_upstream("b1-b2", f"{HOST}:{upstream.port}")
    with connect(port) as client:
        round_trip_ms(client)


def test_disable_and_enable(links: Links, port: int) -> None:
    """Disabled refuses, enabled serves; both are read back."""
    links.disable("b1-b2")
    assert not links.is_clear("b1-b2")
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    links.enable("b1-b2")
    assert links.is_clear("b1-b2")


def test_version(links: Links) -> None:
    """The version of the API, and that the server is ours."""
    assert links.version() == "2.12.0"
    assert links.is_gapless()


# --- toxics


def test_add_update_remove(links: Links, port: int) -> None:
    """A toxic is added, changed in part, listed and removed."""
    added = links.add_toxic("b1-b2", "latency", "upstream", {"latency": 40}, 0.5, "slow")
    assert (added.name, added.toxicity, dict(added.attributes)) == ("slow", 0.5, {"latency": 40, "jitter": 0})
    updated = links.update_toxic("b1-b2", "slow", {"jitter": 3}, 0.1)
    assert (updated.toxicity, dict(updated.attributes)) == (0.1, {"latency": 40, "jitter": 3})
    assert links.toxics("b1-b2") == [updated]
    links.remove_toxic("b1-b2", "slow")
    assert links.toxics("b1-b2") == []


def test_default_name(links: Links, port: int) -> None:
    """Without a name a toxic gets the server's default."""
    assert links.add_toxic("b1-b2", "noop").name == "noop_downstream"


# --- cuts


@pytest.mark.parametrize("direction", ["request", "response", "both"])
def test_a_lossless_cut_delivers_at_heal(links: Links, port: int, direction: str) -> None:
    """Bytes are held on the side that is cut, and arrive when it heals."""
    with connect(port) as client:
        round_trip_ms(client)
        names = links.cut("b1-b2", direction, lossless=True)  # type: ignore[arg-type]
        client.sendall(b"held")
        assert is_silent(client, 0.1)
        stats = links.stats("b1-b2")
        assert stats is not None
        held = (stats.request.bytes_held, stats.response.bytes_held)
        assert held == ((0, 4) if direction == "response" else (4, 0))
        assert not links.is_clear("b1-b2")
        assert names == (("cut-request", "cut-response") if direction == "both" else (f"cut-{direction}",))
        links.heal("b1-b2")
        assert links.is_clear("b1-b2")
        assert receive(client, 4) == b"held"


@pytest.mark.parametrize("direction", ["request", "response"])
def test_a_lossy_cut_drops_and_closes_at_heal(links: Links, port: int, direction: str) -> None:
    """Bytes are gone and counted; the connection closes when the cut heals; a new one works."""
    with connect(port) as client:
        round_trip_ms(client)
        links.cut("b1-b2", direction, lossless=False)  # type: ignore[arg-type]
        client.sendall(b"lost!")
        assert is_silent(client, 0.1)
        stats = links.stats("b1-b2")
        assert stats is not None
        assert (stats.request.bytes_dropped, stats.response.bytes_dropped) == (
            (5, 0) if direction == "request" else (0, 5)
        )
        links.heal("b1-b2")
        assert client.recv(1) == b""
    with connect(port) as client:
        round_trip_ms(client)


@pytest.mark.parametrize("direction", ["request", "response"])
def test_a_reset_answers_the_next_bytes_with_a_reset(links: Links, port: int, direction: str) -> None:
    """Both ends see the connection reset and its end is counted; after the heal a new connection works."""
    with connect(port) as client:
        round_trip_ms(client)
        names = links.reset_connections("b1-b2", direction)  # type: ignore[arg-type]
        assert names == (f"reset-{direction}",)
        client.sendall(b"torn")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        wait_until(lambda: (stats := links.stats("b1-b2")) is not None and stats.connections_closed == 1, "it is gone")
        links.heal("b1-b2", names)
    with connect(port) as client:
        round_trip_ms(client)


def test_two_faults_on_one_link(links: Links, port: int) -> None:
    """Cuts of different names live side by side; removing one leaves the other. A name is used once, or not at all."""
    first = links.cut("b1-b2", "response", lossless=True, name="f1")
    links.cut("b1-b2", "both", lossless=True, name="f2")
    links.heal("b1-b2", first)
    assert [toxic.name for toxic in links.toxics("b1-b2")] == ["f2-request", "f2-response"]
    with pytest.raises(LinkConflict):
        links.cut("b1-b2", "response", lossless=True, name="f2")
    links.remove_toxic("b1-b2", "f2-request")
    with pytest.raises(LinkConflict):
        links.cut("b1-b2", "both", lossless=True, name="f2")
    assert [toxic.name for toxic in links.toxics("b1-b2")] == ["f2-response"]


def test_heal_enables_and_removes_everything(links: Links, port: int) -> None:
    """Whatever was done to a link, heal makes it clear."""
    links.cut("b1-b2", "both", lossless=True)
    links.add_toxic("b1-b2", "latency")
    links.disable("b1-b2")
    links.heal("b1-b2")
    assert links.is_clear("b1-b2")
    with connect(port) as client:
        round_trip_ms(client)


def test_reset_clears_all_links(links: Links, port: int) -> None:
    """One call of reset heals and enables all links."""
    links.create("b2-b1", f"{HOST}:1")
    links.cut("b1-b2", "both", lossless=False)
    links.disable("b2-b1")
    links.reset()
    assert all(state.clear for state in links.all().values())


def test_stall_uses_our_toxic(links: Links, port: int) -> None:
    """On our server packet loss is random stalls per chunk."""
    model = links.stall("b1-b2", "response", probability=1.0, min_ms=40, max_ms=50)
    assert (model.kind, model.toxics) == ("stall", ("stall-response",))
    with connect(port) as client:
        assert round_trip_ms(client) >= 39


def test_stall_on_a_foreign_server(links: Links, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without our toxic it is latency with jitter, and the answer says so."""
    monkeypatch.setattr(Links, "is_gapless", lambda _: False)
    model = links.stall("b1-b2", "both", probability=0.1, min_ms=5, max_ms=30)
    assert (model.kind, len(model.toxics)) == ("latency", 2)
    assert dict(links.toxics("b1-b2")[0].attributes) == {"latency": 0, "jitter": 30}
    assert links.stats("b1-b2") is None


def test_statistics(links: Links, port: int) -> None:
    """Connections and bytes of a link; lag and seed of the server."""
    with connect(port) as client:
        round_trip_ms(client, b"123")
        stats = links.stats("b1-b2")
        assert stats is not None
        assert (stats.connections_active, stats.connections_accepted) == (1, 1)
        assert (stats.request.bytes_in, stats.response.bytes_out) == (3, 3)
    server = links.server_stats()
    assert server is not None
    assert server.seed == 1
    assert 0 <= server.lag_recent_max_ms <= server.lag_max_ms


# --- several servers, several threads, an environment


def test_two_servers_side_by_side(upstream: Upstream) -> None:
    """The library knows one server per process; we know as many as there are, from any thread."""
    with our_server() as one, our_server() as two:
        both = [Links(f"{HOST}:{api.port}") for api in (one, two)]
        with ThreadPoolExecutor(8) as pool:
            jobs = [
                pool.submit(both[index % 2].create, f"link-{index}", f"{HOST}:{upstream.port}") for index in range(16)
            ]
            for job in jobs:
                job.result(10)
        for index, links in enumerate(both):
            assert sorted(links.all()) == sorted(f"link-{number}" for number in range(index, 16, 2))


def test_the_environment_names_no_proxy(links: Links, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY of whoever started the run does not lead our calls astray."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    links.add_toxic("b1-b2", "noop")
    links.heal("b1-b2")


def test_cuts_in_parallel_on_many_links(links: Links, upstream: Upstream) -> None:
    """Isolating a broker cuts many links at once, from threads."""
    names = [f"b1-b{index}" for index in range(2, 10)]
    for name in names:
        links.create(name, f"{HOST}:{upstream.port}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: links.cut(name, "both", lossless=True), names))
        assert not any(pool.map(links.is_clear, names))
        list(pool.map(links.heal, names))
        assert all(pool.map(links.is_clear, names))


def test_live_bytes_move(links: Links, port: int) -> None:
    """Probes see traffic as it passes."""
    with connect(port) as client:
        round_trip_ms(client)
        before = links.stats("b1-b2")
        round_trip_ms(client, bytes(1000))
        after = links.stats("b1-b2")
    assert before is not None
    assert after is not None
    assert after.response.bytes_out - before.response.bytes_out == 1000
    wait_until(lambda: (stats := links.stats("b1-b2")) is not None and stats.connections_active == 0, "it is gone")
