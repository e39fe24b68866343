"""Frames on a link of our server, as faults act on them; another server refuses."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from chaos.links import FramesSeen, LinkRefused, Links, act_on_frames, frames_seen
from tests.chaos.proxy.harness import HOST, Upstream, connect, is_silent, port_of, receive, wait_until

pytestmark = pytest.mark.timeout(20)

END_TXN = 26


def request(correlation_id: int, api_key: int = END_TXN) -> bytes:
    return struct.pack(">ihhi", 8, api_key, 3, correlation_id)


def answer(correlation_id: int, number: int) -> bytes:
    """The n-th answer that the broker of this test gave."""
    return struct.pack(">iii", 8, correlation_id, number)


def broker(connection: socket.socket) -> None:
    """Answers each request with its correlation id, and how many there were on this connection."""
    number = 0
    while len(head := receive(connection, 12)) == 12:
        number += 1
        connection.sendall(answer(struct.unpack(">ihhi", head)[3], number))


@pytest.fixture
def port(links: Links) -> Iterator[int]:
    """The port of a link ``producers-b1`` to such a broker."""
    with Upstream(broker) as upstream:
        yield port_of(links.create("producers-b1", f"{HOST}:{upstream.port}"))


def test_a_request_is_held_until_it_is_let_go(links: Links, port: int) -> None:
    """On a connection that was there before; that it came by is seen meanwhile."""
    with connect(port) as client:
        client.sendall(request(1))
        assert receive(client, 12) == answer(1, 1)
        name = act_on_frames(links, "producers-b1", "hold", "request", {END_TXN}, name="held", count=1)
        assert frames_seen(links, "producers-b1", name) == FramesSeen(0, 0, -1)
        client.sendall(request(2))
        wait_until(lambda: frames_seen(links, "producers-b1", name) == FramesSeen(1, 1, END_TXN), "it came by")
        assert is_silent(client, 0.05)
        links.heal("producers-b1", [name])
        assert receive(client, 12) == answer(2, 2)
        assert frames_seen(links, "producers-b1", name) is None


def test_an_answer_is_swallowed_and_its_connection_closed(links: Links, port: int) -> None:
    """The broker did what it was asked, and no one learns of it."""
    name = act_on_frames(links, "producers-b1", "cut", "response", {END_TXN}, name="lost", count=1)
    with connect(port) as client:
        client.sendall(request(1, api_key=0) + request(2))
        assert receive(client, 100) == answer(1, 1)
    assert frames_seen(links, "producers-b1", name) == FramesSeen(1, 1, END_TXN)
    with connect(port) as client:
        client.sendall(request(3))
        assert receive(client, 12) == answer(3, 1)


def test_a_repeated_request_is_done_twice_and_answered_once(links: Links, port: int) -> None:
    """The broker counts two; the client sees the first answer, and then that to its next request."""
    act_on_frames(links, "producers-b1", "repeat", "request", {END_TXN}, name="twice", count=1)
    with connect(port) as client:
        client.sendall(request(1))
        assert receive(client, 12) == answer(1, 1)
        links.heal("producers-b1")
        client.sendall(request(2))
        assert receive(client, 12) == answer(2, 3)


def test_a_delayed_request_is_late(links: Links, port: int) -> None:
    """By the time given, and no other request is."""
    act_on_frames(links, "producers-b1", "delay", "request", {END_TXN}, name="late", delay_ms=80)
    with connect(port) as client:
        client.sendall(request(1, api_key=0))
        assert receive(client, 12) == answer(1, 1)
        client.sendall(request(2))
        assert is_silent(client, 0.05)
        assert receive(client, 12) == answer(2, 2)


def test_what_makes_no_sense_is_refused(links: Links, port: int) -> None:
    """Impossible frame toxics raise LinkRefused with the server's text."""
    with pytest.raises(LinkRefused, match="api_keys was invalid"):
        act_on_frames(links, "producers-b1", "drop", "request", (), name="none")
    with pytest.raises(LinkRefused, match="count was invalid, must not be negative"):
        act_on_frames(links, "producers-b1", "drop", "request", {END_TXN}, name="none", count=-1)
    with pytest.raises(LinkRefused, match="repeat_frame acts on requests: use upstream"):
        act_on_frames(links, "producers-b1", "repeat", "response", {END_TXN}, name="none")
    with pytest.raises(LinkRefused, match="hold_frame takes every connection: use 1"):
        links.add_toxic("producers-b1", "hold_frame", "upstream", {"api_keys": 1}, toxicity=0.5)
    with pytest.raises(LinkRefused, match="lossy was invalid"):
        links.add_toxic("producers-b1", "hold_frame", "upstream", {"api_keys": 1, "lossy": 2})
    assert links.is_clear("producers-b1")


def test_another_server_is_refused(links: Links, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Toxiproxy has no such toxics; the message names the way out."""
    monkeypatch.setattr(Links, "is_gapless", lambda _: False)
    with pytest.raises(LinkRefused, match=r"an external Toxiproxy, which knows no frames .* use gapless's own proxy"):
        act_on_frames(links, "producers-b1", "hold", "request", {END_TXN}, name="held")
