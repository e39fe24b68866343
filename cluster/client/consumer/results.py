"""What a consumer gives to a program: records, offsets, and the errors of a poll.

Owns the values and the exceptions. Does not own when an error is raised (``fetching``, ``consumer``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import Header
from cluster.topic_partition import TopicPartition

CREATE_TIME, LOG_APPEND_TIME = 0, 1


class ConsumerRecord(NamedTuple):
    """One record as it was read (Kafka's class of this name).

    ``timestamp_type`` is ``CREATE_TIME`` (the producer's) or ``LOG_APPEND_TIME`` (the broker's); ``leader_epoch`` is
    that of the leader which wrote it, -1 if not told.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    leader_epoch: int


class OffsetAndTimestamp(NamedTuple):
    """Where a time begins in a partition: the first record that is not older, and its timestamp in ms."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class ConsumerError(Exception):
    """A poll could not continue. Positions are where they were: nothing is skipped by raising it.

    ``error_code`` is the broker's, or that which says the same.
    """

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


class NoOffsetForPartition(ConsumerError):
    """There is no position, and auto.offset.reset=none does not say where to begin: seek."""

    def __init__(self, partitions: list[TopicPartition]) -> None:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Undefined offset with no reset policy for partitions: {names}; seek to an offset, "
            "or set auto.offset.reset to earliest or latest",
        )
        self.partitions = partitions


class OffsetOutOfRange(ConsumerError):
    """The log does not hold these positions (anymore), and auto.offset.reset=none does not say where to continue."""

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        names = ", ".join(f"{topic}-{partition} at {offset}" for (topic, partition), offset in positions.items())
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Fetch position out of range, and no reset policy is configured: {names}; seek to an offset, "
            "or set auto.offset.reset to earliest or latest",
        )
        self.positions = dict(positions)


class LogTruncated(ConsumerError):
    """What was read is not in the log anymore: it ends, as far as both agree, at ``divergent_offset`` (KIP-320), or no
    one knows where: -1.

    Raised with auto.offset.reset=none; with another policy the consumer continues from there.
    """

    def __init__(self, key: TopicPartition, position: int, divergent_offset: int) -> None:
        known = f"the log agrees with what was read up to {divergent_offset}; seek to {divergent_offset}"
        unknown = "up to where the log agrees is not known; seek to an offset"
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Detected log truncation of {key[0]}-{key[1]}: the position is {position}, and "
            f"{unknown if divergent_offset < 0 else known}, or set auto.offset.reset to earliest or latest",
        )
        self.partition, self.position, self.divergent_offset = key, position, divergent_offset


class TopicRecreated(ConsumerError):
    """The topic was deleted, and another one has its name: the position means nothing there.

    Raised with auto.offset.reset=none, until the program seeks; with another policy the consumer starts over.
    """

    def __init__(self, key: TopicPartition, position: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Topic {key[0]} was deleted and created again, and no reset policy is configured: position {position} of "
            f"partition {key[1]} was in the one before; seek to an offset",
        )
        self.partition, self.position = key, position


class CorruptRecord(ConsumerError):
    """A batch whose checksum does not hold, or that cannot be unpacked. The next poll fetches it again.

    ``partition`` and ``offset`` say where it begins; anyone who wants to continue without it seeks beyond.
    """

    def __init__(self, key: TopicPartition, offset: int, cause: str) -> None:
        super().__init__(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch for partition {key[0]}-{key[1]} at offset {offset} is invalid, cause: {cause}; "
            "seek beyond it to continue without it",
        )
        self.partition, self.offset = key, offset


class PartitionError(ConsumerError):
    """The broker refuses a partition, and asking again will not change that."""

    def __init__(self, error_code: ErrorCode, key: TopicPartition, doing: str) -> None:
        super().__init__(error_code, f"{error_code.name} while {doing} {key[0]}-{key[1]}")
        self.partition = key


class ConsumerClosed(RuntimeError):
    """The consumer was closed."""

    def __init__(self) -> None:
        super().__init__("This consumer has already been closed.")


class ConsumerWokenUp(Exception):
    """``wakeup`` was called: the call that waited, or else the next, gives up. Nothing is lost (WakeupException)."""

    def __init__(self) -> None:
        super().__init__("the consumer was woken up by wakeup(); call again to continue")
