"""``gapless start``: a broker of a cluster that is up runs again after its death. ``gapless up`` does the work."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from chaos.commands.up_state import BROKER_LOG, DATA, Data, ask, nothing_up, running
from chaos.conductor.manual_faults import CUT_SHORT, REFUSED, STARTED
from chaos.exits import BadRequest, Exit
from cluster.process.one_line import printable

HELP = """Start a broker of a running cluster again after it was killed or died, on its own data and ports.

Exit status: 0 it runs, 255 it did not come up.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("start", help=HELP)(start)


def start(
    broker: Annotated[
        int | None, typer.Argument(metavar="ID", help="The broker's ID (see 'gapless status').", show_default=False)
    ] = None,
    data: Data = DATA,
) -> int:
    """Ask the process that holds the cluster, which is the parent of its brokers."""
    if broker is None:
        raise BadRequest(
            "start needs the ID of a broker, such as 'gapless start 2'; 'gapless up --detach' starts a cluster"
        )
    if running(data) is None:
        raise BadRequest(nothing_up(data))
    try:
        answers = list(ask({"start": broker}, data))
    except OSError as error:
        raise BadRequest(f"the cluster in {data} starts no broker: {error.strerror or error}") from error
    except ValueError:
        answers = []
    how, text = (answers[-1]["end"], printable(str(answers[-1]["text"]))) if answers else (CUT_SHORT, "")
    if how == CUT_SHORT:
        print(f"gapless: the cluster in {data} stopped before broker {broker} ran", file=sys.stderr)
        return int(Exit.HARNESS_FAILED)
    if how == REFUSED:
        raise BadRequest(text)
    if how != STARTED:
        print(f"gapless: {text}; its log: {data / 'nodes' / str(broker) / BROKER_LOG}", file=sys.stderr)
        return int(Exit.HARNESS_FAILED)
    print(text, file=sys.stderr)
    return int(Exit.VALID)
