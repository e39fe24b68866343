"""``gapless fault``: one fault in a cluster that is up. Owns the command; ``gapless up`` does the work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.up_state import DATA, Data, ask, nothing_up, on, running
from chaos.conductor.manual_faults import BIT, CUT_SHORT, FAILED, NOT_HEALED, REFUSED
from chaos.exits import BadRequest, Exit
from chaos.faults.catalogue import UnknownFault, check_faults
from cluster.process.one_line import printable

HELP = """Inject one fault into a cluster started with 'gapless up', verify that it takes effect, and heal it.

Ctrl-C heals it immediately. Exit status: 0 it took effect and was healed, 1 it had no effect, 255 it was not healed.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fault", help=HELP)(fault)


def fault(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the fault (see 'gapless list faults').")],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="A partition (orders-0) or a link (b1-b2); for faults on coordinators, a transactional ID or a group. "
            "Default: the first partition, or any ID or group.",
        ),
    ] = None,
    duration: Annotated[
        float | None, typer.Option(help="Seconds until the fault is healed. [dim]default: as in a run[/dim]")
    ] = None,
    data: Data = DATA,
) -> int:
    """Ask the process that holds the cluster, and print what it says."""
    try:
        check_faults([name])
    except UnknownFault as error:
        raise BadRequest(str(error)) from error
    if running(data) is None:
        raise BadRequest(nothing_up(data))
    try:
        return _asked({"fault": name, "target": target, "duration_s": duration}, data)
    except OSError as error:
        raise BadRequest(f"the cluster in {data} accepts no manual faults: {error.strerror or error}") from error


def _asked(request: dict[str, object], data: Path) -> int:
    for answer in ask(request, data):
        if "end" in answer:
            return _end(str(answer["end"]), str(answer["text"]), data)
        print(printable(str(answer["said"])), flush=True)
    print(f"gapless: the cluster in {data} stopped before the fault was over", file=sys.stderr)
    return int(Exit.INVALID)


def _end(how: str, text: str, data: Path) -> int:
    if how == REFUSED:
        raise BadRequest(text)
    if how == NOT_HEALED:
        print(
            printable(f"gapless: not healed: {text}; start over with '{on('down', data)}' and '{on('up', data)}'"),
            file=sys.stderr,
        )
        return int(Exit.HARNESS_FAILED)
    if how == FAILED:
        print(printable(f"gapless: {text}"), file=sys.stderr)
        return int(Exit.HARNESS_FAILED)
    if how == CUT_SHORT:
        print(printable(f"gapless: {text}: the cluster stops"), file=sys.stderr)
    elif how != BIT:
        print(printable(f"gapless: {text}"), file=sys.stderr)
    return int(Exit.VALID if how == BIT else Exit.INVALID)
