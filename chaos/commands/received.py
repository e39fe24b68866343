"""Refuses to write to a directory in which another user may have placed a link.

Owns only the exit status. ``verifier.evidence.outputs`` decides what is refused.
"""

from __future__ import annotations

from pathlib import Path

from chaos.exits import BadRequest
from verifier.evidence.outputs import check_outputs, check_tree


def check_judged(directory: Path) -> None:
    """Raise BadRequest if there is something else, such as a link, at the paths of a verdict's files."""
    try:
        check_outputs(directory)
    except OSError as error:
        raise BadRequest(str(error)) from error


def check_continued(directory: Path) -> None:
    """Raise BadRequest for a link, pipe or device in a directory that is continued, as files anywhere in it grow."""
    try:
        check_tree(directory)
    except OSError as error:
        raise BadRequest(str(error)) from error
