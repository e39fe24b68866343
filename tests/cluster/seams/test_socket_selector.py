"""SocketSelector against a scripted server in the same thread: connecting, frames, full sockets, endings, wake-ups."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from cluster.seams.socket_selector import SocketSelector
from tests.architecture.sources import ROOT
from tests.cluster.seams.sockets import HOST, frame

TIMEOUT_S = 20
NODE = 1


class Recorder:
    """What the selector told."""

    def __init__(self) -> None:
        self.events: list[tuple] = []
        self.then: Callable[[], None] = lambda: None

    def on_connected(self, node_id):
        self.events.append(("connected", node_id))

    def on_frame(self, node_id, payload):
        self.events.append(("frame", node_id, bytes(payload)))
        self.then()

    def on_flushed(self, node_id):
        self.events.append(("flushed", node_id))

    def on_closed(self, node_id, reason):
        self.events.append(("closed", node_id, reason))


class Setting:
    """A selector, a listener, and the server's end of each connection."""

    def __init__(self, max_frame_bytes: int = 1 << 20) -> None:
        self.selector = SocketSelector(max_frame_bytes)
        self.told = Recorder()
        self.listener = socket.create_server((HOST, 0))
        # So that a few MB fill a connection, whatever the machine's limits are.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        self.listener.settimeout(TIMEOUT_S)
        self.port = self.listener.getsockname()[1]
        self.accepted: list[socket.socket] = []

    def until(self, count: int) -> list[tuple]:
        """Poll until so many events were told in all."""
        for _ in range(10_000):
            if len(self.told.events) >= count:
                return self.told.events
            self.selector.poll(TIMEOUT_S * 1000, self.told)
        raise TimeoutError(self.told.events)

    def connect(self, node_id: int = NODE) -> socket.socket:
        """An open connection; the server's end of it."""
        self.selector.connect(node_id, HOST, self.port, 0)
        server = self.listener.accept()[0]
        server.settimeout(TIMEOUT_S)
        self.accepted.append(server)
        assert self.until(1) == [("connected", node_id)]
        self.told.events.clear()
        return server

    def close(self) -> None:
        self.selector.shutdown()
        for server in (*self.accepted, self.listener):
            server.close()


@pytest.fixture
def setting() -> Iterator[Setting]:
    created = Setting()
    yield created
    created.close()


def receive(server: socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    parts = []
    while size:
        parts.append(server.recv(min(size, 1 << 16)))
        assert parts[-1], "closed"
        size -= len(parts[-1])
    return b"".join(parts)


def reset(server: socket.socket) -> None:
    """Close with a reset instead of an end."""
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()


def test_frames_both_ways(setting):
    """Parts are joined behind a size prefix; frames come one by one, also in pieces and many at once."""
    server = setting.connect()
    assert setting.selector.send(NODE, [b"ab", memoryview(b"c"), b"", bytearray(b"d")])
    assert receive(server, 8) == frame(b"abcd")
    server.sendall(frame(b"one") + frame(b"two") + frame(b"three")[:5])
    assert setting.until(2) == [("frame", NODE, b"one"), ("frame", NODE, b"two")]
    server.sendall(frame(b"three")[5:])
    assert setting.until(3)[2:] == [("frame", NODE, b"three")]


def test_a_poll_without_events_ends_in_time(setting):
    """A poll without events returns after its timeout and tells nothing."""
    setting.connect()
    setting.selector.poll(1, setting.told)
    assert setting.told.events == []


def test_a_poll_may_be_longer_than_the_system_waits(setting):
    """epoll refuses waits of a month, which a lingering or an age of Long.MAX_VALUE asks for."""
    timer = threading.Timer(0.05, setting.selector.wakeup)
    timer.start()
    setting.selector.poll(2**63, setting.told)
    timer.join()
    assert setting.told.events == []


def test_a_full_socket_keeps_the_rest(setting):
    """What the kernel does not take is sent as the peer reads, in order, in any number of parts, and then told."""
    server = setting.connect()
    parts = [bytes([number % 251]) * 5_000 for number in range(2_000)]
    assert not setting.selector.send(NODE, parts)
    assert setting.selector.is_sending(NODE)
    assert not setting.selector.send(NODE, [b"last"])
    expected = frame(b"".join(parts)) + frame(b"last")
    received = [receive(server, 10_000)]
    # There may be room now, but only a poll sends and tells.
    assert setting.selector.is_sending(NODE)
    reader = threading.Thread(target=lambda: received.append(receive(server, len(expected) - 10_000)))
    reader.start()
    assert setting.until(1) == [("flushed", NODE)]
    reader.join(TIMEOUT_S)
    assert b"".join(received) == expected
    assert not setting.selector.is_sending(NODE)
    assert setting.selector.send(NODE, [b"more"])


def test_the_server_ends_the_connection(setting):
    """An end, also in the middle of a frame, and a reset: told once, after the frames that came before."""
    server = setting.connect()
    server.sendall(frame(b"whole") + frame(b"half")[:5])
    server.close()
    assert setting.until(2) == [("frame", NODE, b"whole"), ("closed", NODE, "closed by the broker")]
    setting.selector.poll(1, setting.told)
    assert len(setting.told.events) == 2
    setting.told.events.clear()
    reset(setting.connect())
    assert setting.until(1) == [("closed", NODE, "Connection reset by peer")]


def test_writing_into_a_broken_connection(setting):
    """The next poll tells of it, once; until then the connection takes nothing more."""
    reset(setting.connect())
    while setting.selector.send(NODE, [b"x" * 1000]):
        pass
    assert setting.selector.is_sending(NODE)
    assert not setting.selector.send(NODE, [b"y"])
    (closed,) = setting.until(1)
    assert closed[:2] == ("closed", NODE)
    setting.selector.poll(1, setting.told)
    assert len(setting.told.events) == 1
    with pytest.raises(KeyError):
        setting.selector.send(NODE, [b"z"])


def test_a_refused_connection(setting):
    """Told by poll, like any other end."""
    setting.listener.close()
    setting.selector.connect(NODE, HOST, setting.port, 0)
    assert setting.until(1) == [("closed", NODE, "Connection refused")]


def test_an_unknown_host(setting, monkeypatch):
    """It is an OSError at once, and leaves nothing behind."""

    def unknown(*_arguments, **_options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(OSError, match=r"no name of a host: 'a\.\.b'"):
        setting.selector.connect(NODE, "a..b", 1, 0)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="not known"):
        setting.selector.connect(NODE, "nowhere", 1, 0)
    assert not setting.selector.is_sending(NODE)


def test_the_addresses_of_a_host_are_taken_in_turn(setting, monkeypatch):
    """The index counts around, so that each is tried."""
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (HOST, 1)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (HOST, setting.port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: found)
    setting.selector.connect(NODE, "many", 0, 0)
    assert setting.until(1) == [("closed", NODE, "Connection refused")]
    setting.selector.connect(NODE, "many", 0, 3)
    assert setting.until(2)[1:] == [("connected", NODE)]


def test_a_frame_beyond_the_limit_ends_the_connection(setting):
    """The stream cannot be followed any further."""
    server = setting.connect()
    server.sendall(frame(b"fine") + struct.pack(">i", 1 << 21))
    assert setting.until(2) == [
        ("frame", NODE, b"fine"),
        ("closed", NODE, "a frame of 2097152 bytes, the limit is 1048576"),
    ]


def test_closing_from_here(setting):
    """It is not told, and nothing more of that connection is, even what came with the same bytes."""
    server = setting.connect()
    setting.told.then = lambda: setting.selector.close(NODE)
    server.sendall(frame(b"one") + frame(b"two"))
    assert setting.until(1) == [("frame", NODE, b"one")]
    setting.selector.close(NODE)
    setting.selector.poll(1, setting.told)
    assert len(setting.told.events) == 1
    assert server.recv(1) == b""
    setting.told.events.clear()
    setting.connect()


def test_several_nodes(setting):
    """Each has a connection of its own."""
    one, two = setting.connect(1), setting.connect(2)
    setting.selector.send(2, [b"for two"])
    setting.selector.send(1, [b"for one"])
    assert (receive(one, 11), receive(two, 11)) == (frame(b"for one"), frame(b"for two"))


def test_closing_another_node_meanwhile(setting):
    """What the same poll had found for that node is not told any more."""
    for node_id, server in ((1, setting.connect(1)), (2, setting.connect(2))):
        server.sendall(frame(b"%d" % node_id))
    # Both have arrived before the poll that finds them.
    for channel in setting.selector._channels.values():
        channel.socket.setblocking(True)
        assert channel.socket.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL)
        channel.socket.setblocking(False)
    setting.told.then = lambda: setting.selector.close(3 - setting.told.events[0][1])
    setting.until(1)
    setting.selector.poll(1, setting.told)
    assert len(setting.told.events) == 1


def test_a_wakeup_from_another_thread(setting):
    """It ends the poll that waits; many of them end it once, and one before a poll is not lost."""
    setting.connect()
    for _ in range(3):
        waker = threading.Thread(target=setting.selector.wakeup)
        waker.start()
        setting.selector.poll(None, setting.told)
        waker.join(TIMEOUT_S)
        for _ in range(1000):
            setting.selector.wakeup()
        setting.selector.poll(None, setting.told)
    assert setting.told.events == []


def test_a_wakeup_while_nobody_waits_writes_nothing_and_is_kept(setting):
    """The next poll returns at once, and only that one."""
    setting.selector.wakeup()
    with pytest.raises(BlockingIOError):
        setting.selector._wakeup_reader.recv(1)
    setting.selector.poll(None, setting.told)
    began = time.monotonic()
    setting.selector.poll(20, setting.told)
    assert time.monotonic() - began > 0.015


def test_a_wakeup_just_before_the_wait_ends_it(setting, monkeypatch):
    """After poll has looked whether it was woken, a byte is what ends the wait that follows."""
    select = setting.selector._selector.select

    def wake_and_select(timeout_s):
        setting.selector.wakeup()
        return select(timeout_s)

    monkeypatch.setattr(setting.selector._selector, "select", wake_and_select)
    began = time.monotonic()
    setting.selector.poll(TIMEOUT_S * 1000, setting.told)
    assert time.monotonic() - began < TIMEOUT_S


def test_no_wakeup_is_lost_between_two_threads(setting):
    """Whatever a thread has done before it wakes the other up is seen after the poll, wherever they are interrupted."""
    done = seen = 0
    turns = threading.Semaphore(1)

    def work():
        nonlocal done
        while done < 3_000 and turns.acquire(timeout=TIMEOUT_S):
            done += 1
            setting.selector.wakeup()

    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while seen < 3_000:
            began = time.monotonic()
            setting.selector.poll(TIMEOUT_S * 1000, setting.told)
            assert time.monotonic() - began < TIMEOUT_S, f"wake-up {done} was lost"
            if done > seen:
                seen = done
                turns.release()
    finally:
        sys.setswitchinterval(interval)
        thread.join(TIMEOUT_S)


def test_a_wakeup_after_the_end_does_nothing():
    """Whoever still holds the client may call it."""
    setting = Setting()
    setting.connect()
    setting.close()
    setting.selector.wakeup()
    setting.selector.wakeup()


UNDER_GEVENT = """
from gevent import monkey
monkey.patch_all()
import socket, threading
from cluster.seams.socket_selector import SocketSelector
told = []
class Handler:
    def on_connected(self, node_id): told.append("connected"); selector.send(node_id, [b"x" * 10_000_000])
    def on_frame(self, node_id, frame): told.append(bytes(frame)); selector.wakeup()
    def on_flushed(self, node_id): told.append("flushed")
    def on_closed(self, node_id, reason): told.append(reason)
def serve():
    server = listener.accept()[0]
    left = 10_000_004
    while left:
        left -= len(server.recv(left))
    server.sendall(b"\\0\\0\\0\\2ok")
    server.recv(1)
    server.close()
listener = socket.create_server(("127.0.0.1", 0))
thread = threading.Thread(target=serve)
thread.start()
selector = SocketSelector()
selector.connect(1, "127.0.0.1", listener.getsockname()[1], 0)
while len(told) < 3:
    selector.poll(20_000, Handler())
selector.poll(None, Handler())
selector.shutdown()
thread.join(20)
listener.close()
print(*told)
"""


@pytest.mark.integration
def test_under_gevent():
    """Where gevent has patched sockets and threads everything goes on, and other greenlets run meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", UNDER_GEVENT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["connected", "flushed", "b'ok'"], done.stderr


NOTHING_IS_OVERLOOKED = """
from gevent import monkey
monkey.patch_all()
import gevent, socket, time
from cluster.seams.socket_selector import SocketSelector

class Told:
    frames, on_connected, on_flushed, on_closed = [], print, print, print
    def on_frame(self, node_id, frame): self.frames.append(bytes(frame))

told, selector = Told(), SocketSelector()
listener = socket.create_server(("127.0.0.1", 0))
selector.connect(1, *listener.getsockname(), 0)
server = listener.accept()[0]
selector.poll(20_000, told)

def polls(what, timeout_ms=20_000):
    began = time.monotonic()
    selector.poll(timeout_ms, told)
    assert time.monotonic() - began < 10, what

def answer_and_wake():
    server.sendall(b"\\0\\0\\0\\1a" b"\\0\\0\\0\\1b")
    selector.wakeup()

selector.wakeup()
polls("a wake-up before the poll")
gevent.spawn(selector.wakeup)
polls("a wake-up during the poll")
for pause_s in (0, 0.001):
    for _ in range(50):
        late = gevent.spawn_later(pause_s, answer_and_wake)
        selector.poll(pause_s * 1000, told)
        late.join()
        while len(told.frames) < 2:
            polls("what came at the very deadline of a poll")
        assert told.frames == [b"a", b"b"]
        told.frames.clear()
        with gevent.Timeout(pause_s, False):
            selector.poll(20_000, told)
        answer_and_wake()
        while len(told.frames) < 2:
            polls("what came after a poll that was cut short")
        told.frames.clear()
print("nothing")
"""


def test_nothing_is_overlooked_under_gevent():
    """Wake-ups and frames before, in, after and at the deadline of a poll, and after one that an exception ended."""
    done = subprocess.run(
        [sys.executable, "-c", NOTHING_IS_OVERLOOKED], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split()[-1:] == ["nothing"], done.stderr
