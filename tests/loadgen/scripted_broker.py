"""One broker of one partition on a real socket, for librdkafka: a test decides when it leads and what it answers.

Owns the log and its producers' states, which are judged by the product's own rule (``cluster.log.sequence``). Serves
what a producer asks for, ApiVersions, Metadata, InitProducerId and Produce, and claims to serve what a broker does:
librdkafka looks at the versions of Fetch before it sends batches of magic 2.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cluster.log.producers import ProducerStates
from cluster.log.sequence import VerdictKind, check_sequence
from cluster.protocol import messages, produce
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import RequestHeader
from cluster.protocol.records import decode_records
from tests.cluster.client.fake_broker import api_versions_response, metadata_response

#: The producer id that is given out first; each one more.
FIRST_PRODUCER_ID = 1001
_SIZE = struct.Struct(">i")


class Stored(NamedTuple):
    """A record in the log: under which producer epoch and sequence."""

    value: bytes
    producer_epoch: int
    sequence: int


class Produced(NamedTuple):
    """A Produce request that has arrived."""

    header: RequestHeader
    batch: BatchHeader
    values: tuple[bytes, ...]


class ScriptedBroker:
    """``on_produce`` decides about the requests of a connection that have no answer yet, in the order of arrival.

    It is asked at each one that arrives, and returns the answers to the oldest of them: none yet is the empty list, and
    None closes the connection.
    """

    def __init__(self, topic: str, on_produce: Callable[[list[Produced]], list[ErrorCode] | None]) -> None:
        self.topic = topic
        self.log: list[Stored] = []
        #: What each batch that arrived was: its producer epoch, its first sequence, and what was answered, if anything.
        self.batches: list[tuple[int, int, ErrorCode | None]] = []
        #: How many were given out.
        self.producer_ids = 0
        self._on_produce = on_produce
        self._states = ProducerStates()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def judge(self, produced: Produced) -> ErrorCode:
        """What a leader with this log answers, after it stored what it had to store."""
        batch = produced.batch
        verdict = check_sequence(self._states.get(batch.producer_id), batch, 0, "gapless")
        if verdict.kind is VerdictKind.ACCEPT:
            self._states.update(batch, len(self.log))
            self.log += [
                Stored(value, batch.producer_epoch, batch.base_sequence + step)
                for step, value in enumerate(produced.values)
            ]
        return verdict.error_code

    def close(self) -> None:
        """End all connections and threads."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        waiting: list[Produced] = []
        try:
            for frame in _frames(connection):
                header = messages.parse_request_header(frame)
                if header.api_key != ApiKey.PRODUCE:
                    _send(connection, self._answer(header, frame))
                    continue
                waiting.append(_produced(header, frame))
                answers = self._on_produce(waiting)
                if answers is None:
                    self.batches += [(one.batch.producer_epoch, one.batch.base_sequence, None) for one in waiting]
                    break
                for code in answers:
                    _send(connection, self._produce_answer(waiting.pop(0), code))
        finally:
            self._open.discard(connection)
            connection.close()

    def _produce_answer(self, one: Produced, code: ErrorCode) -> bytes:
        self.batches.append((one.batch.producer_epoch, one.batch.base_sequence, code))
        # the newest that has this value
        offset = max((offset for offset, each in enumerate(self.log) if each.value == one.values[0]), default=-1)
        result = produce.ProduceResult(self.topic, 0, code, offset if code is ErrorCode.NONE else -1)
        return produce.build_response(one.header.api_version, one.header.correlation_id, [result])

    def _answer(self, header: RequestHeader, frame: bytes) -> bytes:
        key = ApiKey(header.api_key)
        if not messages.is_supported(key, header.api_version):
            return messages.encode_unsupported_api_versions(header.correlation_id, SUPPORTED[key])
        if key is ApiKey.API_VERSIONS:
            response = api_versions_response(SUPPORTED)
        elif key is ApiKey.METADATA:
            response = metadata_response({1: self.address}, {self.topic: [(1, [1])]}, 1)
        else:
            producer_id = FIRST_PRODUCER_ID + self.producer_ids
            self.producer_ids += 1
            response = messages.response_class(key)(
                throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
            )
        return messages.encode_response(key, header.api_version, header.correlation_id, response)


@contextmanager
def scripted(topic: str, on_produce: Callable[[list[Produced]], list[ErrorCode] | None]) -> Iterator[ScriptedBroker]:
    """A broker for as long as the block."""
    broker = ScriptedBroker(topic, on_produce)
    try:
        yield broker
    finally:
        broker.close()


def _produced(header: RequestHeader, frame: bytes) -> Produced:
    request = produce.parse_request(memoryview(frame)[header.body_offset :], header.api_version)
    [partition] = request.partitions
    data = bytes(partition.records or b"")
    return Produced(header, parse_header(data), tuple(record.value or b"" for record in decode_records(data)))


def _frames(connection: socket.socket) -> Iterator[bytes]:
    try:
        while size := _exactly(connection, _SIZE.size):
            yield _exactly(connection, *_SIZE.unpack(size))
    except OSError:
        return


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            return b""
        data += more
    return bytes(data)


def _send(connection: socket.socket, response: bytes) -> None:
    connection.sendall(_SIZE.pack(len(response)) + response)
