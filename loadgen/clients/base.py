"""The interfaces of Kafka clients to the load. Owns only the interfaces; adapters implement them.

``ProducerClient`` is the asynchronous producer of a stream, ``RecordReader`` a consumer of given offsets,
``SentinelSender`` a producer for one record to each partition. Several clients stand behind each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from cluster.protocol.errors import ErrorCode
from loadgen.spans import ReadRecord


class Failure(NamedTuple):
    """Why a record was not plainly acknowledged, or what else went wrong in a client.

    ``code`` is Kafka's error code and says what may be claimed of the record (``outcomes.recorded_outcome``): it is
    never a refusal if an earlier attempt may have stored the record. After a fatal failure the client can do no more.
    """

    text: str
    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    is_fatal: bool = False


class Retried(NamedTuple):
    """An attempt to send records failed, and they are sent again, or may be.

    ``first`` and ``last`` are their sequences; None if the client does not say which of the outstanding ones they were.
    """

    reason: str
    records: int
    first: int | None = None
    last: int | None = None


def ignore(_told: object) -> None:
    """A callback that does nothing."""


class ClientRefusal(Exception):
    """A producer client did not accept a record."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class ProducerClient(Protocol):
    """The asynchronous producer of a stream. No call blocks but ``dispose``."""

    @property
    def is_cooperative(self) -> bool:
        """Whether other greenlets run while it waits, as with plain Python under Locust. If not, it needs a thread."""
        ...

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        """Queue one record. Raises ``BufferError`` if it cannot be taken just now, ``ClientRefusal`` otherwise."""
        ...

    def poll(self) -> None:
        """Call the callbacks about everything that has happened since the last call."""
        ...

    def purge(self) -> None:
        """Abandon records that are queued or in flight. Their callbacks come from ``poll``."""
        ...

    def dispose(self, timeout_s: float) -> bool:
        """Drop what is left and end, within about ``timeout_s``. Blocks: not for an event loop's thread.

        False if it could not be ended in time and was left behind.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClientCallbacks:
    """What a producer client reports. Called from within ``poll``; none may raise.

    ``on_delivery`` is told the sequence, None or why it was not acknowledged, and the offset as the client has it
    (None or negative: it was not told).
    """

    on_delivery: Callable[[int, Failure | None, int | None], None]
    on_error: Callable[[Failure], None]
    on_identity: Callable[[int, int], None]  # producer id and epoch, as last known
    on_retry: Callable[[Retried], None] = ignore
    #: Why connections to brokers were lost, as far as is known, and how many.
    on_disconnect: Callable[[str, int], None] = lambda _reason, _connections: None


ProducerFactory = Callable[[ClientCallbacks], ProducerClient]


class PolledRecords(NamedTuple):
    """The result of one poll. ``broken``: the assignment must be rebuilt before reading can continue."""

    records: list[ReadRecord]
    errors: list[str]
    broken: bool


class Watermarks(NamedTuple):
    """The end of a partition, as the last fetch response reported it to a consumer; -1 if unknown."""

    high_watermark: int = -1
    last_stable_offset: int = -1


class RecordReader(Protocol):
    """A consumer that reads assigned partitions from given offsets, uncommitted, and never resets an offset."""

    @property
    def is_cooperative(self) -> bool:
        """Whether other greenlets run while it waits. If not, it needs a thread."""
        ...

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets from now on. Replaces the previous assignment."""
        ...

    def poll(self, max_records: int, timeout_s: float) -> PolledRecords: ...

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        """The known end of an assigned partition. Sends no request and raises nothing."""
        ...

    def end_offsets(self, topic: str, partitions: Collection[int], timeout_s: float) -> Mapping[int, int]:
        """The current end offsets, from ListOffsets; empty without an answer, or if this client does not support it."""
        ...

    def close(self) -> None:
        """Close connections and end threads. May take seconds."""
        ...


class SentResult(NamedTuple):
    """The outcome of one sentinel. An acknowledgement may lack the offset. ``error`` says why something is missing."""

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
    """The first line of an error's text, cut to ``limit`` characters."""
    lines: Sequence[str] = str(text).strip().splitlines() or [""]
    return lines[0][:limit]
