"""How a person starts gapless here: the first word of every command that is printed to be pasted. Owns that word."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

NAME = "gapless"
#: Where ``make setup`` puts it, seen from the directory of the sources: for who runs modules of ours without it.
FROM_THE_SOURCES = f".venv/bin/{NAME}"


def program() -> str:
    """``gapless`` if that is this environment's on PATH; else its path, from here if it is below."""
    found, own = shutil.which(NAME), Path(sys.executable).with_name(NAME)
    if found is not None and Path(found).parent == own.parent:
        return NAME
    if not own.is_file():
        return FROM_THE_SOURCES
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)


def command(words: Iterable[str]) -> str:
    """The command with these arguments, for a shell."""
    return shlex.join([program(), *words])
