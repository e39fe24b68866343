"""Refuses directories in which a command is to write and someone else may have put a link. Owns the exit status alone:
what is refused is decided by ``verifier.evidence.outputs``.
"""

from __future__ import annotations

from pathlib import Path

from chaos.exits import BadRequest
from verifier.evidence.outputs import check_outputs, check_tree


def check_judged(directory: Path) -> None:
    """Raise BadRequest if something, a link above all, stands where the files of a verdict belong."""
    try:
        check_outputs(directory)
    except OSError as error:
        raise BadRequest(str(error)) from error


def check_continued(directory: Path) -> None:
    """Raise BadRequest for any link, pipe or device in a directory that is continued: files anywhere in it grow."""
    try:
        check_tree(directory)
    except OSError as error:
        raise BadRequest(str(error)) from error
