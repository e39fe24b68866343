"""What tests of the proxy need around it: our server in a thread, a plain HTTP client, servers to proxy to."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from chaos.proxy.server import ProxyServer

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Api:
    """Calls on one server, one connection each."""

    def __init__(self, port: int) -> None:
        self.port = port

    def call(self, method: str, path: str, body: object = None, agent: str = "test") -> Answer:
        """``body`` goes as it is if it is a string, else as JSON."""
        data = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request(method, path, data.encode(), {"User-Agent": agent})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: object = None) -> Any:
        answer = self.call(method, path, body)
        assert 200 <= answer.status < 300, answer
        return answer.json() if answer.body else None

    def create(self, name: str, upstream_port: int, **more: object) -> int:
        """A proxy on a port of its own; returns the port."""
        body = {"name": name, "listen": f"{HOST}:0", "upstream": f"{HOST}:{upstream_port}"} | more
        return port_of(self.ok("POST", "/proxies", body)["listen"])

    def toxic(self, proxy: str, kind: str, stream: str = "downstream", toxicity: float = 1.0, **attributes: int) -> str:
        """Add a toxic; returns its name."""
        body = {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
        return str(self.ok("POST", f"/proxies/{proxy}/toxics", body)["name"])

    def remove(self, proxy: str, toxic: str) -> None:
        self.ok("DELETE", f"/proxies/{proxy}/toxics/{toxic}")


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@contextlib.contextmanager
def our_server(seed: int = 1, dial_timeout_ms: int = 1000) -> Iterator[Api]:
    """Our server on a loop of its own in a thread. At the end nothing may be left on that loop."""
    started: queue.Queue[tuple[int, asyncio.AbstractEventLoop, asyncio.Event] | BaseException] = queue.Queue()
    leftovers: list[asyncio.Task[Any]] = []

    async def serve() -> None:
        server = ProxyServer(seed, dial_timeout_ms=dial_timeout_ms)
        stopping = asyncio.Event()
        port = await server.start(HOST, 0)
        started.put((port, asyncio.get_running_loop(), stopping))
        await stopping.wait()
        await server.stop()
        await asyncio.sleep(0)
        leftovers.extend(task for task in asyncio.all_tasks() if task is not asyncio.current_task())

    def target() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            started.put(error)
            raise

    thread = threading.Thread(target=target, name="proxy server")
    thread.start()
    first = started.get(timeout=5)
    if isinstance(first, BaseException):
        raise first
    port, loop, stopping = first
    try:
        yield Api(port)
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(timeout=5)
        assert not thread.is_alive()
        assert not leftovers


class Upstream:
    """A TCP server with a thread per connection; everything is closed and joined at the end."""

    def __init__(self, handle: Callable[[socket.socket], None]) -> None:
        self._handle = handle
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, name="upstream")

    def __enter__(self) -> Upstream:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(10)
            self._connections.append(connection)
            thread = threading.Thread(target=self._run, args=(connection,), name="upstream connection")
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._handle(connection)


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()


def connect(port: int, timeout_s: float = 5.0) -> socket.socket:
    connection = socket.create_connection((HOST, port), timeout=timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly ``size`` bytes, or fewer if the connection ends."""
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(65536, size - len(received)))
        if not part:
            break
        received += part
    return bytes(received)


def round_trip_ms(connection: socket.socket, message: bytes = b"ping") -> float:
    """Send to an echo and wait for all of it."""
    started = time.perf_counter()
    connection.sendall(message)
    assert receive(connection, len(message)) == message
    return (time.perf_counter() - started) * 1000


def is_silent(connection: socket.socket, for_s: float) -> bool:
    """Whether nothing arrives, no end either, for a while."""
    before = connection.gettimeout()
    connection.settimeout(for_s)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(before)
    return False


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.005)
