"""Links measured from outside: by requests of our own, by when a connection ends, and by who is refused."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator

import pytest

from chaos.conductor.async_links import AsyncLinks
from chaos.links import Links
from chaos.links.ping import PING_BYTES, close_ms, is_refused, ping
from tests.chaos.proxy.harness import HOST, Upstream, port_of, receive

pytestmark = pytest.mark.timeout(30)

TIMEOUT_MS = 5_000


def broker(connection: socket.socket) -> None:
    """Answers ApiVersions, each frame with its correlation id."""
    while len(head := receive(connection, 4)) == 4:
        body = receive(connection, int.from_bytes(head, "big"))
        api_key, _, correlation_id, padding = struct.unpack_from(">hhih", body)
        assert api_key == 18 and len(body) == PING_BYTES - 4 + padding
        connection.sendall(struct.pack(">ii", 4, correlation_id))


@pytest.fixture
def address(links: Links) -> Iterator[str]:
    """Where a link ``producers-b1`` to such a broker listens."""
    with Upstream(broker) as upstream:
        listen = links.create("producers-b1", f"{HOST}:{upstream.port}")
        yield f"{HOST}:{port_of(listen)}"


def took_ms(address: str, size_bytes: int = 0) -> float:
    found = ping(address, timeout_ms=TIMEOUT_MS, size_bytes=size_bytes)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "attributes", "size_bytes", "least_ms"),
    [
        ("latency", {"latency": 200, "jitter": 0}, 0, 200),
        ("bandwidth", {"rate": 20}, 6_000, 250),
        ("slicer", {"average_size": 100, "size_variation": 0, "delay": 10_000}, 3_000, 250),
    ],
)
def test_a_ping_is_late_by_what_a_toxic_does(
    links: Links, address: str, kind: str, attributes: dict[str, int], size_bytes: int, least_ms: int
) -> None:
    """At least by that, and by none of it when the toxic is gone."""
    assert took_ms(address, size_bytes) < least_ms
    added = links.add_each("producers-b1", "request", "one", kind, attributes)
    assert took_ms(address, size_bytes) >= least_ms
    links.heal("producers-b1", added)
    assert took_ms(address, size_bytes) < least_ms


@pytest.mark.parametrize("lossless", [True, False])
def test_a_ping_through_a_cut_is_not_answered_and_its_bytes_are_seen(
    links: Links, address: str, lossless: bool
) -> None:
    """They are held, or dropped: what is asked for is there even on a link that no one else uses."""
    links.cut("producers-b1", "both", lossless=lossless)
    assert ping(address, timeout_ms=150) is None
    stats = links.stats("producers-b1")
    assert stats is not None
    assert (stats.request.bytes_held, stats.request.bytes_dropped)[not lossless] == PING_BYTES


def test_a_close_is_late_by_what_a_toxic_does(links: Links, address: str) -> None:
    """Counted from our end to the other one."""
    before_ms = close_ms(address, timeout_ms=TIMEOUT_MS)
    assert before_ms is not None and before_ms < 200
    links.add_toxic("producers-b1", "slow_close", "upstream", {"delay": 300})
    late_ms = close_ms(address, timeout_ms=TIMEOUT_MS)
    assert late_ms is not None and late_ms >= 300
    assert close_ms(address, timeout_ms=100) is None


def test_a_link_is_down_until_the_last_who_took_it_down_heals(links: Links, address: str) -> None:
    """Two faults on one link: each sees what it did itself, and the link comes up with the later one."""

    async def scenario() -> None:
        ours = AsyncLinks(links)
        one, other = await ours.take_down("producers-b1"), await ours.take_down("producers-b1")
        assert await ours.is_refused("producers-b1") and is_refused(address, timeout_ms=1_000)
        assert await ours.ping("producers-b1", timeout_ms=1_000) is None
        await ours.heal(one)
        assert (await ours.remaining(one), await ours.remaining(other)) == ((), other.toxics)
        assert await ours.is_refused("producers-b1")
        await ours.heal(one)
        assert await ours.is_refused("producers-b1")
        await ours.heal(other)
        assert (await ours.remaining(one), await ours.remaining(other)) == ((), ())
        assert not await ours.is_refused("producers-b1")
        assert await ours.ping("producers-b1", timeout_ms=TIMEOUT_MS) is not None

    asyncio.run(scenario())


def test_a_link_that_stays_down_is_no_heal(links: Links, address: str) -> None:
    """The server is asked, and not our memory of what was undone."""

    async def scenario() -> None:
        ours = AsyncLinks(links)
        mark = await ours.take_down("producers-b1")
        await ours.heal(mark)
        links.disable("producers-b1")
        assert await ours.remaining(mark) == mark.toxics

    asyncio.run(scenario())
