"""What a producer tells a program: where a record went, and what can become of it instead.

Owns the values and the exceptions with Kafka's texts. Does not own who raises them, nor what is retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.protocol.errors import ErrorCode


class RecordMetadata(NamedTuple):
    """Where a record went (Kafka's class of this name).

    ``offset`` is -1 if it is not known: with acks=0, and when the broker only said that it had the record already.
    ``timestamp_ms`` is the broker's where the topic has LogAppendTime, else the record's own. The sizes are bytes after
    serialization, -1 for null. Of a record that failed, all but topic and partition is -1.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    serialized_key_bytes: int
    serialized_value_bytes: int


class RetriedBatch(NamedTuple):
    """An attempt to send a batch failed, and the batch is sent again (Kafka tells no one).

    ``on_delivery`` are the callbacks of its records, in their order, by which a program knows which records they are.
    """

    topic: str
    partition: int
    error_code: ErrorCode
    on_delivery: tuple[object, ...]


class ProduceError(Exception):
    """A record was not produced, or not as far as the producer knows. ``error_code`` says why."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(f"{error_code.name}: {message}")
        self.error_code = error_code

    @property
    def retriable(self) -> bool:
        """Whether the same record, sent again, may do better."""
        return self.error_code.retriable


class InvalidRecord(ProduceError):
    """The broker refused this very record, and with it the others of its batch, which fail with a plain
    ``ProduceError`` (KIP-467). ``error_code`` is INVALID_RECORD, or the batch's if no other record was refused."""


#: What is wrong with single records of a batch, by their index in it.
RecordErrors = Mapping[int, ProduceError]


class BufferExhausted(ProduceError):
    """No room in buffer.memory within max.block.ms: Kafka's BufferExhaustedException, a kind of timeout."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)

    @classmethod
    def after(cls, size_bytes: int, max_block_ms: int, total_bytes: int, available_bytes: int) -> BufferExhausted:
        """``size_bytes`` could not be had within ``max_block_ms``."""
        return cls(
            f"Failed to allocate {size_bytes} bytes within the configured max blocking time {max_block_ms} ms. "
            f"Total memory: {total_bytes} bytes. Available memory: {available_bytes} bytes."
        )


class RecordTooLarge(ProduceError):
    """A record that no request or no buffer can hold, or that the broker found too large by itself."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.MESSAGE_TOO_LARGE, message)

    @classmethod
    def than(cls, size_bytes: int, key: str, limit_bytes: int) -> RecordTooLarge:
        """A record of ``size_bytes``, where the setting ``key`` allows ``limit_bytes``."""
        return cls(
            f"The message is {size_bytes} bytes when serialized which is larger than {limit_bytes}, "
            f"which is the value of the {key} configuration."
        )


class DeliveryTimeout(ProduceError):
    """No outcome within delivery.timeout.ms. The record may have been written nevertheless, if it was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)

    @classmethod
    def of(cls, record_count: int, topic: str, partition: int, age_ms: int) -> DeliveryTimeout:
        """For a batch that is ``age_ms`` old."""
        return cls(
            f"Expiring {record_count} record(s) for {topic}-{partition}:{age_ms} ms has passed since batch creation"
        )


class ProducerClosed(ProduceError):
    """The producer was closed before, or without waiting for, this record. Kafka has no code for it."""

    def __init__(self, message: str = "Producer is closed forcefully.") -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        # No broker said so.
        self.args = (message,)


class FatalProducerError(ProduceError):
    """This producer can send nothing anymore; a new one may."""

    @property
    def retriable(self) -> bool:
        """Never, whatever the code: not by this producer."""
        return False
