"""Exit statuses (README.md) and the exceptions that cause them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit status of a command. Typer exits with 2 for bad arguments, which would read as ``unknown``."""

    VALID = 0
    INVALID = 1
    UNKNOWN = 2
    INTERRUPTED = 130
    BAD_ARGUMENTS = 254
    HARNESS_FAILED = 255


class BadRequest(Exception):
    """The request is not possible; one line names the problem and the fix. Ends with 254."""


class BadUsage(BadRequest):
    """Options that a command does not take together. The line also names the help of the command."""


VERDICTS = {"valid": Exit.VALID, "invalid": Exit.INVALID, "unknown": Exit.UNKNOWN}
