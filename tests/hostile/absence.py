"""How long a broker is away: a well-behaved connection asks again and again, and the longest round trips are kept.

Owns plain blocking exchanges over a socket, and the thread or the process that watches. Does not own what else is sent
meanwhile.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster.process.child import ChildChannel
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import decode_response, encode_request, encode_response, request_class
from tests.hostile.cost import MOST_LOG_BYTES, Cost, costing
from tests.hostile.target import Target

HOST = "127.0.0.1"
PATIENCE_S = 120.0
#: Between two questions of the watcher.
PAUSE_S = 0.002
#: Round trips that are kept, with the time at which each began: those that took longer.
NOTED_AWAY_S = 0.1


class Plain:
    """One blocking connection."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S) -> None:
        self.sock = socket.create_connection((HOST, port), timeout=patience_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_error: object) -> None:
        self.sock.close()

    def put(self, frame: bytes) -> None:
        """Send one frame and wait for nothing."""
        self.sock.sendall(struct.pack(">i", len(frame)) + frame)

    def take(self) -> bytes:
        """The next frame. Raises ``EOFError`` when the broker has closed."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def send(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """One request and its answer."""
        self._correlation_id += 1
        self.put(encode_request(request_class(api_key)(**fields), version, self._correlation_id, "hostile"))
        correlation_id, message = decode_response(api_key, version, self.take())
        assert correlation_id == self._correlation_id
        return message

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> int:
        """Make a topic with one replica, and wait until it is led; the answer's error code."""
        request = request_class(ApiKey.CREATE_TOPICS)
        topic = request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[
                request.CreatableTopic.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in config.items()
            ],
        )
        answer = self.send(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout_ms=30_000, validate_only=False)
        return int(answer.topics[0].error_code)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            data = self.sock.recv(min(1 << 20, size - len(parts)))
            if not data:
                raise EOFError("the broker has closed the connection")
            parts += data
        return bytes(parts)


class Watch:
    """The longest time that the broker did not answer a connection that asks for nothing much.

    ``turn_s`` is the processor time of its loop's longest turn meanwhile, in seconds of the reference machine: what a
    test can hold on a busy machine and on a slow one. ``cost``: what else it took, if that was measured.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.turn_s = 0.0
        self.answers = 0
        #: Of each long absence: when it began, on the monotonic clock that all processes share, and how long it took.
        self.absences: list[tuple[float, float]] = []
        self.cost: Cost | None = None

    def __repr__(self) -> str:
        longest_ms, turn_ms = self.longest_s * 1000, self.turn_s * 1000
        cost = "" if self.cost is None else f"; {self.cost!r}"
        return f"Watch(away {longest_ms:.0f} ms, longest turn {turn_ms:.0f} ms, {self.answers} answers{cost})"

    def run(self, port: int, stop: threading.Event) -> None:
        with Plain(port) as plain:
            while not stop.wait(PAUSE_S):
                begun = time.monotonic()
                plain.send(ApiKey.API_VERSIONS, 2)
                took_s = time.monotonic() - begun
                self.longest_s = max(self.longest_s, took_s)
                if took_s > NOTED_AWAY_S:
                    self.absences.append((begun, took_s))
                self.answers += 1


@contextmanager
def watching(broker: Target, most_log_bytes: int = MOST_LOG_BYTES) -> Iterator[Watch]:
    """Measure the absence of the broker while the block runs, the answer after it, and what it cost the broker.

    ``pytest -rP`` shows the figures. Nothing that is sent may make the broker log more than ``most_log_bytes``.
    """
    watch, stop = Watch(), threading.Event()
    before = len(broker.turns())
    thread = threading.Thread(target=watch.run, args=(broker.port, stop))
    with costing(broker) as watch.cost:
        thread.start()
        try:
            yield watch
        finally:
            stop.set()
            thread.join()
            watch.turn_s = max(broker.turns()[before:], default=0.0)
    sys.stdout.write(f"{watch!r}\n")
    assert watch.cost.log_bytes <= most_log_bytes, watch


@contextmanager
def watching_apart(broker: Target) -> Iterator[Watch]:
    """The same from a process of its own, which no sender holds up; the figures are there after the block."""
    watch = Watch()
    before = len(broker.turns())
    child = broker.start_beside("watch", f"{__name__}:watch_until_told", {"port": broker.port})
    try:
        yield watch
    finally:
        child.send({})
        told = child.wait_message(PATIENCE_S)
        watch.longest_s, watch.answers = told["longest_s"], told["answers"]
        watch.absences = [(begun, took_s) for begun, took_s in told["absences"]]
        watch.turn_s = max(broker.turns()[before:], default=0.0)


def watch_until_told(arguments: dict[str, Any], channel: ChildChannel) -> None:
    """The entry of the process that watches: a message ends it, and its figures are the answer."""
    watch, stop = Watch(), threading.Event()

    def await_end() -> None:
        channel.receive()
        stop.set()

    threading.Thread(target=await_end, daemon=True).start()
    watch.run(arguments["port"], stop)
    channel.ready({"longest_s": watch.longest_s, "answers": watch.answers, "absences": watch.absences})


def answer_bytes(version: int, message: Any) -> int:
    """How large a decoded answer was on the wire."""
    return len(encode_response(message.API_KEY, version, 0, message))
