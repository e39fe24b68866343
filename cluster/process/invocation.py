"""How users call gapless on this machine: the program in every command that is printed for them. Owns that program."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

NAME = "gapless"
#: Where ``make setup`` installs it, relative to the sources: for users who run our modules without installing them.
FROM_THE_SOURCES = f".venv/bin/{NAME}"


def program() -> str:
    """``gapless`` if PATH finds that of this environment; otherwise its path, relative if it is below the current
    directory."""
    found, own = shutil.which(NAME), Path(sys.executable).with_name(NAME)
    if found is not None and Path(found).parent.resolve() == own.parent.resolve():
        return NAME
    if not own.is_file():
        return FROM_THE_SOURCES
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)


def called(module: str) -> str:
    """``python -m MODULE`` if this process was called that way; otherwise ``program()``."""
    head = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv[1:])]
    return shlex.join(head) if head[-2:] == ["-m", module] else program()


def command(words: Iterable[str]) -> str:
    """The command with these arguments, for a shell."""
    return shlex.join([program(), *words])


def absolute(words: Iterable[str]) -> str:
    """The same from any directory: with the whole path of the program, or with the module of an uninstalled one."""
    own = Path(sys.executable).with_name(NAME)
    return shlex.join([*([str(own)] if own.is_file() else [sys.executable, "-m", "chaos.commands.main"]), *words])
