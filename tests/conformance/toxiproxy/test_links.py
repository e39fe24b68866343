"""Our client on every backend: cuts, heals and packet loss work on a foreign Toxiproxy too, as far as it can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.links import Links, LinkServerError
from tests.chaos.proxy.harness import HOST, Upstream, connect, echo, is_silent, port_of, receive, round_trip_ms
from tests.conformance.toxiproxy.conftest import Backend

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def links(backend: Backend) -> Links:
    return Links(f"http://{HOST}:{backend.api.port}")


@pytest.fixture
def port(links: Links) -> Iterator[int]:
    with Upstream(echo) as upstream:
        yield port_of(links.create("b1-b2", f"{HOST}:{upstream.port}"))


@pytest.mark.parametrize("direction", ["request", "response", "both"])
def test_lossless_cut_and_heal(links: Links, port: int, direction: str) -> None:
    """A lossless cut holds bytes back, and they arrive when it heals."""
    with connect(port) as client:
        round_trip_ms(client)
        links.cut("b1-b2", direction, lossless=True)  # type: ignore[arg-type]
        client.sendall(b"held")
        assert is_silent(client, 0.1)
        links.heal("b1-b2")
        assert receive(client, 4) == b"held"
        round_trip_ms(client)


@pytest.mark.parametrize("direction", ["request", "response", "both"])
def test_lossy_cut_and_heal(links: Links, port: int, direction: str) -> None:
    """Dropped bytes never arrive, and the connection closes at heal."""
    with connect(port) as client:
        round_trip_ms(client)
        links.cut("b1-b2", direction, lossless=False)  # type: ignore[arg-type]
        client.sendall(b"lost")
        assert is_silent(client, 0.1)
        links.heal("b1-b2")
        assert client.recv(1) == b""
    with connect(port) as client:
        round_trip_ms(client)


def test_stall_says_which_model_it_is(backend: Backend, links: Links, port: int) -> None:
    """Our toxic on our server, jitter elsewhere; bytes pass either way."""
    model = links.stall("b1-b2", "both", probability=0.5, min_ms=1, max_ms=20)
    assert model.kind == ("stall" if backend.ours else "latency")
    with connect(port) as client:
        for _ in range(10):
            assert round_trip_ms(client) < 500
    links.heal("b1-b2")


def test_a_busy_port_is_an_error(links: Links, port: int) -> None:
    """What toxiproxy-python turns into a KeyError is the server's own text."""
    with pytest.raises(LinkServerError, match="address already in use"):
        links.create("b2-b1", f"{HOST}:1", listen=f"{HOST}:{port}")


def test_disable_enable_reset(links: Links, port: int) -> None:
    """Disabling, enabling, resetting and deleting are each read back from the server."""
    links.disable("b1-b2")
    links.enable("b1-b2")
    links.cut("b1-b2", "both", lossless=True)
    links.reset()
    assert links.is_clear("b1-b2")
    links.set_upstream("b1-b2", f"{HOST}:1")
    links.delete("b1-b2")
    assert links.all() == {}
