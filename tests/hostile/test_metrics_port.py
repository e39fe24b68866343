"""The port of the metrics: a crowd takes few threads, a request little memory, and reading it little of a processor."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from cluster.broker.exposition import BrokerCollector, MetricsServer
from cluster.broker.metrics import Counters
from cluster.process.processes import until
from cluster.seams import http_port
from cluster.seams.http_port import MOST_CONNECTIONS, MOST_HEAD_BYTES, RESTS, HttpPort

HEAD = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def metrics() -> Iterator[int]:
    with closing(MetricsServer([BrokerCollector(Counters(), dict)], 0)) as server:
        yield server.port


@contextmanager
def served(application: Callable[..., Any]) -> Iterator[int]:
    with closing(HttpPort(application, 0, "127.0.0.1")) as server:
        yield server.port


def connect(stack: ExitStack, port: int) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))


def scrape(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return bytes(answer.read())


def ended(client: socket.socket) -> bool:
    """Whether the server has closed it, with no matter what before."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("begun", [b"", HEAD])
def test_a_crowd_that_asks_for_nothing_takes_few_threads(metrics: int, begun: bytes) -> None:
    """And keeps no one out: the one that is silent for the longest time makes room."""
    before = threading.active_count()
    with ExitStack() as stack:
        crowd = [connect(stack, metrics) for _ in range(100)]
        for client in crowd[: -2 * MOST_CONNECTIONS]:
            client.settimeout(20)
        for client in crowd[-MOST_CONNECTIONS:]:
            client.sendall(begun)
        assert b"gapless_requests_total" in scrape(metrics)
        assert all(map(ended, crowd[: -2 * MOST_CONNECTIONS]))
        assert threading.active_count() - before <= MOST_CONNECTIONS + 1


def test_who_came_just_now_has_a_moment_for_its_request(metrics: int) -> None:
    """Twice as many as there are places, none of which is slow: all are answered."""
    with ExitStack() as stack:
        crowd = [connect(stack, metrics) for _ in range(2 * MOST_CONNECTIONS)]
        # Long enough that all places are taken and the next connection looks for one; no event tells of it.
        time.sleep(0.05)
        for client in crowd:
            client.sendall(HEAD + b"\r\n")
        assert all(client.recv(100).startswith(b"HTTP/1.0 200 ") for client in crowd)


@pytest.mark.parametrize("drop", [b"", b"X"])
def test_who_does_not_finish_a_request_is_dropped(metrics: int, drop: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same time whether bytes drop in meanwhile or not."""
    monkeypatch.setattr(http_port, "TIMEOUT_S", 0.5)
    with ExitStack() as stack:
        client = connect(stack, metrics)
        client.sendall(HEAD)
        begun = time.monotonic()
        client.settimeout(0.05)
        while not ended(client) and time.monotonic() - begun < 10:
            try:
                client.sendall(drop)
            except ConnectionError:
                break
        assert time.monotonic() - begun < 5


def test_a_head_is_small(metrics: int) -> None:
    """A large HTTP head is refused with 431, no matter of how many lines."""
    with ExitStack() as stack:
        client = connect(stack, metrics)
        client.sendall((HEAD + 3000 * b"X-A: 1\r\n")[:MOST_HEAD_BYTES])
        assert client.recv(100).startswith(b"HTTP/1.0 431 ")
        assert ended(client)


def test_a_response_that_no_one_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread and its bytes are free after a while."""
    monkeypatch.setattr(http_port, "TIMEOUT_S", 0.5)

    def large(_environ: object, start: Callable[..., object]) -> list[bytes]:
        start("200 OK", [])
        return [bytes(50_000_000)]

    with served(large) as port, ExitStack() as stack:
        before = threading.active_count()
        client = connect(stack, port)
        client.sendall(HEAD + b"\r\n")
        assert client.recv(1)
        assert threading.active_count() == before + 1
        assert until(lambda: threading.active_count() == before, 10)


class _Time:
    """A clock of seconds that moves with each look at it, and when something is waited for or worked at."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.worked_s = 0.0
        self.slept_s: list[float] = []
        self._one = threading.Lock()
        self.looks = threading.Semaphore(0)

    def monotonic(self) -> float:
        with self._one:
            self.now_s += 0.001
            self.looks.release()
            return self.now_s

    def thread_time(self) -> float:
        return self.worked_s

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.slept_s.append(duration_s)


def test_those_who_wait_for_the_same_share_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began after they came, and not before the application had rested."""
    clock, begun, goes_on = _Time(), threading.Event(), threading.Event()
    monkeypatch.setattr(http_port, "time", clock)
    calls: list[float] = []

    def application(_environ: object, start: Callable[..., object]) -> list[bytes]:
        calls.append(clock.now_s)
        begun.set()
        assert goes_on.wait(20)
        clock.worked_s += 1
        start("200 OK", [])
        return [b"%d" % len(calls)]

    rested = http_port._Rested(application)
    answers: list[bytes] = []

    def ask() -> None:
        answers.extend(rested({}, lambda *_: None))

    readers = [threading.Thread(target=ask) for _ in range(MOST_CONNECTIONS)]
    readers[0].start()
    assert begun.wait(20)
    while clock.looks.acquire(blocking=False):
        pass
    for reader in readers[1:]:
        reader.start()
    for _ in readers[1:]:
        assert clock.looks.acquire(timeout=20), "each has come"
    goes_on.set()
    for reader in readers:
        reader.join(20)
    assert sorted(answers) == [b"1", *[b"2"] * (MOST_CONNECTIONS - 1)]
    assert clock.slept_s == [0.0, pytest.approx(RESTS, abs=0.1)]
    assert calls[1] > calls[0] + RESTS


def test_many_readers_take_a_part_of_a_processor() -> None:
    """However many ask how often; and no answer is older than its question."""
    worked: list[float] = []

    def slow(_environ: object, start: Callable[..., object]) -> list[bytes]:
        begun, begun_s = time.thread_time(), time.monotonic()
        while time.thread_time() - begun < 0.02:
            pass
        worked.append(time.thread_time() - begun)
        start("200 OK", [])
        return [str(begun_s).encode()]

    fresh: list[bool] = []

    def read(port: int, until_s: float) -> None:
        while (asked_s := time.monotonic()) < until_s:
            fresh.append(float(scrape(port)) >= asked_s)

    with served(slow) as port:
        begun_s = time.monotonic()
        readers = [threading.Thread(target=read, args=(port, begun_s + 1)) for _ in range(MOST_CONNECTIONS)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        took_s = time.monotonic() - begun_s
    assert all(fresh) and len(fresh) >= MOST_CONNECTIONS
    assert sum(worked) < 1.2 * took_s / (1 + RESTS) + 0.05, (sum(worked), took_s)
