"""How much a command says on stderr while it works: ``-q`` and ``-v``. Owns both options; says nothing itself."""

from __future__ import annotations

import logging
import sys
from enum import Enum
from typing import Annotated

import typer

from chaos.exits import BadRequest
from chaos.experiment.declaration import Panel
from cluster.process.one_line import FORMAT, OneLine

Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print only the outcome.", rich_help_panel=Panel.OUTPUT.value),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Show the whole log instead of progress only.", rich_help_panel=Panel.OUTPUT.value
    ),
]


#: The same for commands whose options are not grouped in panels.
PlainQuiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the outcome.")]


class Talk(Enum):
    """What is shown on stderr before the outcome."""

    QUIET = "quiet"
    PROGRESS = "progress"
    LOG = "log"

    @property
    def is_silent(self) -> bool:
        """Whether progress is not shown, or only as lines of the log."""
        return self is not Talk.PROGRESS

    def show_log(self) -> None:
        """Show the log on stderr from now on, with ``--verbose``."""
        if self is Talk.LOG:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(OneLine(FORMAT))
            logging.getLogger().addHandler(handler)


def talk_of(*, quiet: bool, verbose: bool) -> Talk:
    """What to show on stderr. Raises BadRequest if both are true."""
    if quiet and verbose:
        raise BadRequest("--quiet and --verbose are mutually exclusive; leave one of them out")
    return Talk.QUIET if quiet else Talk.LOG if verbose else Talk.PROGRESS
