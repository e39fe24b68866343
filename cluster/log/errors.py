"""What can go wrong in a log. Owns the exceptions of this room; each carries the code that a client is told."""

from __future__ import annotations

import errno

from cluster.protocol.errors import ErrorCode


class LogError(Exception):
    """An operation on a log that was refused or failed. ``error_code`` is Kafka's, ``message`` is for people."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(f"{error_code.name}: {message}")
        self.error_code = error_code
        self.message = message


class OffsetOutsideLog(LogError):
    """An offset below the log start or above the log end."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not in [{log_start_offset}, {log_end_offset}]"
        )
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class UnexpectedOffset(LogError):
    """A follower was given a batch that does not continue its log: it begins below its end, or its epoch is older."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class StorageFailed(LogError):
    """The disk failed under a log (Kafka answers KAFKA_STORAGE_ERROR), or what it holds is damaged."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class OutOfFiles(LogError):
    """Too many files are open: the disk is well, the log is as it was, and what was asked may be asked again."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


def not_opened(message: str, error: OSError) -> LogError:
    """What to raise when a file could not be opened and nothing has changed."""
    is_out_of_files = error.errno in (errno.EMFILE, errno.ENFILE)
    return (OutOfFiles if is_out_of_files else StorageFailed)(f"{message}: {error}")


class CheckpointError(LogError):
    """A checkpoint, index or snapshot that is not in its format."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class LogOffline(StorageFailed):
    """A log that could not be opened when the broker started: it is left as it is, and its replica stays offline."""
