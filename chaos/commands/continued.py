"""A sweep that is continued: by ``--resume``, or by asking for the same again with the same ``--out``.

Owns what can be continued, and the refusals. Which cells are run again is the runner's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from chaos.commands.received import check_continued
from chaos.conductor.leftovers import clean_continued, work_on
from chaos.exits import BadRequest
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Sweep, SweepError, Wanted
from chaos.sweeps.summary import SCHEMA
from chaos.sweeps.sweep_runner import stored
from cluster.process.invocation import command

#: Parameters of ``gapless sweep`` that decide its cells, or where they are.
_OF_THE_FIRST_START = frozenset(
    (
        "name",
        "seeds",
        "random",
        "time_limit",
        "minutes",
        "client",
        "rate",
        "faults",
        "profile",
        "swarm",
        "defect",
        "out",
    )
)


def check_beside_resume(context: typer.Context) -> None:
    """Raises SweepError if an option that decides the cells is given with ``--resume``; names those that may be."""
    options = {
        str(each.name): max(each.opts, key=len) if each.param_type_name == "option" else str(each.metavar)
        for each in context.command.params
    }
    for name in options.keys() & _OF_THE_FIRST_START:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            *others, last = (shown for each, shown in options.items() if each not in (*_OF_THE_FIRST_START, "resume"))
            raise SweepError(
                f"{options[name]} cannot be combined with --resume, which uses the options of the first start; "
                f"leave it out: what --resume can be combined with is {', '.join(others)} and {last}"
            )


def resumed(path: Path) -> tuple[str, Wanted, SweepDirectory]:
    """The name, the options and the directory of a stored sweep. The options stay those of its first start.

    Raises SweepError if it cannot be read, and BadRequest for a link in it.
    """
    directory = SweepDirectory(path.resolve())
    try:
        whole = stored(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SweepError(
            f"--resume {path} is not a sweep's directory: it has no sweep.json; sweeps are in results/NAME/TIME"
        ) from error
    except (OSError, ValueError) as error:
        raise SweepError(f"--resume {path}: sweep.json cannot be read ({error}); start the sweep again") from error
    if whole.get("schema") != SCHEMA:
        raise SweepError(f"--resume {path} was made by another version of gapless; start the sweep again")
    check_continued(directory.path)
    return whole["sweep"], Wanted.from_json(whole["wanted"]), directory


def same_again(chosen: Sweep, wanted: Wanted, out: Path) -> SweepDirectory | None:
    """The sweep that exists at ``--out`` already, if it has the same options; None if there is no sweep.

    Raises SweepError for another sweep, BadRequest for a link in it.
    """
    directory = SweepDirectory(out.resolve())
    try:
        whole = stored(directory)
    except (OSError, ValueError):
        return None
    again = command(["sweep", "--resume", str(out)])
    if (
        whole.get("schema") != SCHEMA
        or whole["sweep"] != chosen.name
        or _shape(whole["wanted"]) != _shape(wanted.to_json())
    ):
        raise SweepError(f"--out {out} holds a sweep with other options; give another directory, or resume it: {again}")
    check_continued(directory.path)
    return directory


def _shape(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The options that decide the cells, without the day (the seeds include it) and the limit on the whole sweep."""
    return {name: value for name, value in wanted.items() if name not in ("day", "minutes")}


def take_over(directory: SweepDirectory) -> list[str]:
    """End what a killed conductor left behind; returns a line on each. Raises BadRequest if the sweep is running."""
    work = work_on(directory.path)
    if work is not None and work.conductor is not None:
        raise BadRequest(
            f"{directory.path} is being run by process {work.conductor.pid}; wait for it, or stop it with: "
            f"kill -INT {work.conductor.pid}"
        )
    return clean_continued(directory.path)
