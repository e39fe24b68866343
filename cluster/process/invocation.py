"""How a person starts gapless here: the first word of every command that is printed to be pasted. Owns that word."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

NAME = "gapless"
#: Where ``make setup`` puts it, seen from the directory of the sources.
FROM_THE_SOURCES = f".venv/bin/{NAME}"


def program() -> str:
    """``gapless`` if that is this environment's on PATH, else where ``make setup`` puts it."""
    found = shutil.which(NAME)
    return NAME if found is not None and Path(found).parent == Path(sys.executable).parent else FROM_THE_SOURCES


def command(words: Iterable[str]) -> str:
    """The command with these arguments, for a shell."""
    return shlex.join([program(), *words])
