"""The shares of file descriptors: no kind is kept out by the others."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from pathlib import Path
from random import Random

import pytest

from cluster.seams import descriptors
from cluster.seams.descriptors import Share
from cluster.seams.os_storage import OsStorage
from cluster.seams.send_queue import SendQueue
from tests.cluster.seams.sockets import HOST, frame, run

LIMIT = 1024
USABLE = 896


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> tuple[Share, ...]:
    """Of files, clients and peers, with nothing taken; LIMIT descriptors."""
    fresh = (Share("files", 4), Share("clients", 4), Share("peers", 1))
    monkeypatch.setattr(descriptors, "_ALL", fresh)
    monkeypatch.setattr(descriptors, "limit", lambda: LIMIT)
    return fresh


def fill(share: Share, first: int = 0) -> int:
    """Take as many as it may have, and return how many."""
    taken = 0
    while share.take(first + taken):
        taken += 1
    return taken


@pytest.mark.parametrize("greedy", [0, 1, 2], ids=["files", "clients", "peers"])
def test_a_flood_of_one_kind_leaves_the_others_their_shares(shares: tuple[Share, ...], greedy: int) -> None:
    """A quarter for files, a quarter for clients, a sixteenth for peers, no matter who comes first."""
    sizes = [USABLE // 4, USABLE // 4, USABLE // 16]
    assert fill(shares[greedy], 10_000) == USABLE - sum(sizes) + sizes[greedy]
    for number, share in enumerate(shares):
        if number != greedy:
            assert fill(share, 1000 * number) == sizes[number]
    assert sum(map(len, shares)) == USABLE


def test_what_is_given_back_is_there_for_others(shares: tuple[Share, ...]) -> None:
    """In any order of openings and closings a share of one's own is never refused, and all together never too much."""
    random = Random(4711)
    own = [USABLE // 4, USABLE // 4, USABLE // 16]
    held: list[list[int]] = [[], [], []]
    for descriptor in range(20_000):
        kind = random.choice((0, 0, 1, 1, 1, 2))
        if held[kind] and random.random() < 0.4 + 0.2 * (descriptor // 1000 % 2):
            shares[kind].give(held[kind].pop(random.randrange(len(held[kind]))))
        elif shares[kind].take(descriptor):
            held[kind].append(descriptor)
        else:
            assert len(held[kind]) >= own[kind]
        assert sum(map(len, held)) == sum(map(len, shares)) <= USABLE


def test_no_limit_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlimited descriptors are many, not fewer than none."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert descriptors.limit() > 1_000_000
    share = Share("files", 4)
    assert share.take(5)


def test_a_file_counts_until_it_is_closed(tmp_path: Path) -> None:
    """Once, however often it is closed; what is not kept open does not count."""
    storage = OsStorage()
    before = len(descriptors.FILES)
    file = storage.open(str(tmp_path / "log"), keep=True)
    assert len(descriptors.FILES) == before + 1
    other = storage.open(str(tmp_path / "index"))
    assert len(descriptors.FILES) == before + 1
    other.close()
    file.close()
    file.close()
    assert len(descriptors.FILES) == before


def test_connections_count_until_they_are_closed() -> None:
    """By clients or by peers, whoever the listener is for."""
    for is_for_peers, share in ((False, descriptors.CLIENTS), (True, descriptors.PEERS)):
        before = len(share)

        async def body(listener, acceptor) -> None:
            _, writer = await asyncio.open_connection(HOST, listener.port)
            writer.write(frame(b"x"))
            await (await acceptor.first()).until(lambda handler: handler.frames != [])
            assert len(share) == before + 1  # noqa: B023
            writer.close()
            await acceptor.handlers[0].until(lambda handler: handler.eofs == 1)
            acceptor.handlers[0].connection.close()
            await acceptor.handlers[0].until(lambda handler: handler.closed != [])
            assert len(share) == before  # noqa: B023

        run(body, is_for_peers=is_for_peers)


class Nothing(Share):
    """It is all taken."""

    def take(self, descriptor: int) -> bool:
        return False


def test_a_file_too_many_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And told as such; one that is not kept open may still be opened."""
    monkeypatch.setattr("cluster.seams.os_storage.FILES", Nothing("files", 4))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="files open, and as many as are not kept for connections"):
        OsStorage().open(str(tmp_path / "log"), keep=True)
    OsStorage().open(str(tmp_path / "index")).close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_full_socket_without_a_second_descriptor_is_tried_again() -> None:
    """A peer that does not read gets no second descriptor when none is left, and all of its data once it reads."""

    async def main() -> None:
        here, there = socket.socketpair()
        here.setblocking(False)
        there.setblocking(False)
        queue = SendQueue(asyncio.get_running_loop(), here.fileno(), lambda: queue.resume(), Nothing("clients", 4))
        data = os.urandom(3_000_000)
        before = len(os.listdir("/proc/self/fd"))
        assert queue.put_bytes(data) > 0
        assert len(os.listdir("/proc/self/fd")) == before
        received = bytearray()
        while len(received) < len(data):
            received += await asyncio.get_running_loop().sock_recv(there, 1 << 20)
        assert bytes(received) == data and queue.is_empty
        queue.clear()
        here.close()
        there.close()

    asyncio.run(main())
