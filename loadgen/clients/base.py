"""What the load asks of a client: three small shapes. Owns no behaviour.

``ProducerClient`` is the asynchronous producer of a stream, as confluent-kafka has it; ``RecordReader`` and
``SentinelSender`` are narrower, so that two clients can stand behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from loadgen.runs import ReadRecord


class ClientError(Protocol):
    """confluent-kafka's ``KafkaError``, as far as it is used."""

    def code(self) -> int: ...

    def name(self) -> str: ...

    def fatal(self) -> bool: ...

    def str(self) -> str: ...


class DeliveredMessage(Protocol):
    """confluent-kafka's ``Message`` in a delivery report, as far as it is used."""

    def value(self) -> bytes | None: ...

    def offset(self) -> int | None: ...


DeliveryCallback = Callable[[ClientError | None, DeliveredMessage], None]


class ProducerClient(Protocol):
    """confluent-kafka's ``Producer``. No call blocks but ``close``, which waits for everything that was sent."""

    def produce(self, topic: str, value: bytes, *, partition: int, on_delivery: DeliveryCallback) -> None:
        """Queue one record. Raises ``BufferError`` if the queue is full, the client's own exception otherwise."""
        ...

    def poll(self, timeout: float) -> int: ...

    def purge(self, *, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None: ...

    def close(self) -> bool: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ClientCallbacks:
    """What a producer client reports besides deliveries. Called from within ``poll``; none may raise."""

    on_error: Callable[[ClientError], None]
    on_identity: Callable[[int, int], None]  # producer id and epoch, as of the last statistics


ProducerFactory = Callable[[ClientCallbacks], ProducerClient]


class Polled(NamedTuple):
    """What one poll brought. ``broken``: the assignment must be made anew before reading can go on."""

    records: list[ReadRecord]
    errors: list[str]
    broken: bool


class RecordReader(Protocol):
    """A consumer that reads assigned partitions from given offsets, uncommitted, and never resets an offset."""

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets from now on; replaces the former assignment."""
        ...

    def poll(self, max_records: int, timeout_s: float) -> Polled: ...

    def close(self) -> None:
        """Give up connections and threads. May take seconds."""
        ...


class SentResult(NamedTuple):
    """What became of one sentinel. An acknowledgement may lack the offset; ``error`` says why something is lacking."""

    acknowledged: bool
    offset: int | None = None
    error: str | None = None

    @classmethod
    def of_offset(cls, offset: int | None) -> SentResult:
        """The result of an acknowledgement, whose offset may be unknown (None or negative)."""
        if offset is None or offset < 0:
            return cls(True, None, "acknowledged without an offset")
        return cls(True, offset)

    @classmethod
    def unknown(cls, error: str) -> SentResult:
        return cls(False, None, error)


class SentinelSender(Protocol):
    """A fresh acks=all producer for one attempt."""

    def send(self, topic: str, values: Mapping[int, bytes], timeout_s: float) -> dict[int, SentResult]:
        """Send one value to each partition; one result per partition within about ``timeout_s``."""
        ...


SenderFactory = Callable[[], SentinelSender]
ReaderFactory = Callable[[], RecordReader]


def first_line(text: Any, limit: int = 200) -> str:
    """An error's text fit for a column: one line, bounded."""
    lines: Sequence[str] = str(text).strip().splitlines() or [""]
    return lines[0][:limit]
