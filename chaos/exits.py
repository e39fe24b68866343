"""Exit statuses (README.md) and the errors that stand for them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command ends with. Typer's own 2 for bad arguments would read as ``unknown``, so it is mapped."""

    VALID = 0
    INVALID = 1
    UNKNOWN = 2
    INTERRUPTED = 130
    BAD_ARGUMENTS = 254
    HARNESS_FAILED = 255


class BadRequest(Exception):
    """What was asked for is not possible; one line that names the thing and the fix. Ends with 254."""


VERDICTS = {"valid": Exit.VALID, "invalid": Exit.INVALID, "unknown": Exit.UNKNOWN}
