"""Sending bad bytes to a broker, as fast as it takes them, while others look how it fares.

Owns the sender (one thread, many connections at once, each half-closed after its bytes) and the two observers: the
broker's memory, and a well-behaved client. Does not own what is sent (``tests.support.frames``).
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import confluent_kafka
import psutil

from tests.support.kafka_clients import Confluent

HOST = "127.0.0.1"
#: Connections that are open at once.
WINDOW = 48
#: Within this every connection must have ended, whatever was sent on it.
BOUND_S = 20.0


#: JoinGroup and SyncGroup.
_FOR_MEMBERS = (11, 14)

_AnyShot = TypeVar("_AnyShot", bound="Shot")


@dataclass
class Outcome:
    """What became of the connections of one or several attacks."""

    answered: int = 0
    closed: int = 0
    #: Waited for other members of a group, as Kafka's would, and were given up.
    waited: int = 0
    slowest_s: float = 0.0

    @property
    def sent(self) -> int:
        return self.answered + self.closed + self.waited


class Shot:
    """One connection: its bytes leave, it is half-closed, and it is read to its end."""

    __slots__ = ("begun", "got", "port", "sock", "unsent", "wire")

    def __init__(self, port: int, wire: bytes) -> None:
        self.port = port
        self.wire = wire
        self.unsent = memoryview(wire)
        #: What has come back.
        self.got = bytearray()
        self.begun = time.monotonic()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setblocking(False)

    def __repr__(self) -> str:
        return f"Shot({self.wire.hex()})"

    @property
    def waits_for_members(self) -> bool:
        """Whether it may wait for other members of a group for as long as it asked for itself."""
        return len(self.wire) >= 6 and struct.unpack_from(">h", self.wire, 4)[0] in _FOR_MEMBERS

    def connect(self) -> bool:
        """Begin to connect; False while this machine has no free port."""
        code = self.sock.connect_ex((HOST, self.port))
        if code in (errno.EADDRNOTAVAIL, errno.EAGAIN):
            return False
        assert code in (0, errno.EINPROGRESS), errno.errorcode[code]
        return True

    def write(self) -> None:
        """Send what is left, and the half-close after it. Raises ``BlockingIOError`` when the socket is full."""
        while self.unsent:
            self.unsent = self.unsent[self.sock.send(self.unsent) :]
        self.sock.shutdown(socket.SHUT_WR)

    def read(self) -> bool:
        """Whether the broker has closed."""
        while data := self.sock.recv(65_536):
            self.got += data
        return True


def attack(targets: Iterable[tuple[int, bytes]], outcome: Outcome, window: int = WINDOW) -> None:
    """Send each of ``targets`` (port, bytes) on a connection of its own. Fails the test if one does not end."""
    fire((Shot(*target) for target in targets), outcome, window)


def fire(
    shots: Iterable[_AnyShot],
    outcome: Outcome,
    window: int = WINDOW,
    ended: Callable[[_AnyShot], None] = lambda shot: None,
    bound_s: float = BOUND_S,
) -> None:
    """The same for connections of the caller's own, which hears of each that has ended; the next is asked for after."""
    pending = iter(shots)
    live: set[_AnyShot] = set()
    waiting: _AnyShot | None = None
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                while len(live) < window and (waiting := waiting or next(pending, None)) and waiting.connect():
                    selector.register(waiting.sock, selectors.EVENT_WRITE, waiting)
                    live.add(waiting)
                    waiting = None
                if not live and waiting is None:
                    return
                for key, events in selector.select(0.05):
                    if _step(selector, key.data, events):
                        live.remove(key.data)
                        _end(selector, key.data, outcome)
                        ended(key.data)
                for shot in _overdue(live, bound_s):
                    live.remove(shot)
                    outcome.waited += 1
                    selector.unregister(shot.sock)
                    shot.sock.close()
                    ended(shot)
        finally:
            for shot in (*live, *([waiting] if waiting else [])):
                shot.sock.close()


def _step(selector: selectors.BaseSelector, shot: Shot, events: int) -> bool:
    """Go on with one connection; whether it has ended."""
    try:
        if events & selectors.EVENT_WRITE:
            shot.write()
            selector.modify(shot.sock, selectors.EVENT_READ, shot)
            return False
        return shot.read()
    except BlockingIOError:
        return False
    except (BrokenPipeError, ConnectionResetError):
        # The broker has closed before it read everything. What it answered before that is still there.
        with suppress(OSError):
            shot.read()
        return True
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return True
        raise


def _end(selector: selectors.BaseSelector, shot: Shot, outcome: Outcome) -> None:
    selector.unregister(shot.sock)
    shot.sock.close()
    outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - shot.begun)
    if shot.got:
        outcome.answered += 1
    else:
        outcome.closed += 1


def _overdue(live: Iterable[_AnyShot], bound_s: float) -> list[_AnyShot]:
    """Those that still wait after ``bound_s`` and may; fails if one may not."""
    now = time.monotonic()
    overdue = [shot for shot in live if now - shot.begun > bound_s]
    stuck = [shot for shot in overdue if not shot.waits_for_members]
    assert not stuck, f"neither answered nor closed within {bound_s} s: {stuck[0]!r}"
    return overdue


@dataclass
class Bystander:
    """A client that does everything right beside an attack: writes with acks=all, reads it back, asks for metadata."""

    topic: str
    client: Confluent
    errors: list[str] = field(default_factory=list)
    acknowledged: int = 0
    read: int = 0
    worst_write_s: float = 0.0
    worst_read_s: float = 0.0
    worst_metadata_s: float = 0.0

    #: Between two of its rounds: it is a client, not a load.
    PAUSE_S = 0.02
    PATIENCE_S = 15.0

    def run(self, stop: threading.Event) -> None:
        """Go on until told to stop."""
        producer = confluent_kafka.Producer({**self.client.settings, "acks": "all", "linger.ms": 0})
        consumer = self.client.consumer(self.topic, [0], **{"fetch.wait.max.ms": 20})
        try:
            while not stop.wait(self.PAUSE_S) and not self.errors:
                self.worst_write_s = max(self.worst_write_s, self._timed(self._write, producer))
                self.worst_read_s = max(self.worst_read_s, self._timed(self._read, consumer))
                if self.acknowledged % 10 == 0:
                    self.worst_metadata_s = max(self.worst_metadata_s, self._timed(self._look, None))
        except Exception as error:
            self.errors.append(repr(error))
        finally:
            consumer.close()

    def _timed(self, call: Any, argument: Any) -> float:
        begun = time.monotonic()
        call(argument)
        return time.monotonic() - begun

    def _write(self, producer: Any) -> None:
        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                self.errors.append(str(error))
            else:
                self.acknowledged += 1

        producer.produce(self.topic, b"%d" % self.acknowledged, partition=0, on_delivery=delivered)
        if producer.flush(self.PATIENCE_S):
            self.errors.append(f"no acknowledgement within {self.PATIENCE_S} s")

    def _read(self, consumer: Any) -> None:
        deadline = time.monotonic() + self.PATIENCE_S
        while self.read < self.acknowledged and not self.errors:
            message = consumer.poll(0.2)
            if message is None:
                if time.monotonic() > deadline:
                    self.errors.append(f"record {self.read} was not read within {self.PATIENCE_S} s")
            elif message.error() is not None:
                self.errors.append(str(message.error()))
            elif int(message.value()) != self.read:
                self.errors.append(f"record {self.read} is {message.value()!r}")
            else:
                self.read += 1

    def _look(self, _argument: None) -> None:
        self.client.admin.list_topics(self.topic, timeout=self.PATIENCE_S)


@dataclass
class MemoryWatch:
    """The resident memory of a process. ``settle`` marks where the growth is counted from."""

    process: psutil.Process
    settled_bytes: int = 0
    most_bytes: int = 0

    def settle(self) -> None:
        self.settled_bytes = self.most_bytes = self.process.memory_info().rss

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(0.1):
            self.most_bytes = max(self.most_bytes, self.process.memory_info().rss)

    @property
    def growth_bytes(self) -> int:
        """The most above what it was when it had settled."""
        return self.most_bytes - self.settled_bytes


class Observer(Protocol):
    """Something that goes on in a thread until it is told to stop."""

    def run(self, stop: threading.Event) -> None: ...


@contextmanager
def alongside(*observers: Observer) -> Iterator[None]:
    """Let the observers run, each in a thread of its own, until the block ends."""
    stop = threading.Event()
    threads = [threading.Thread(target=observer.run, args=(stop,)) for observer in observers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
