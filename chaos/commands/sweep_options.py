"""The options that only ``gapless sweep`` has, and the seeds that they choose. Runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chaos.experiment.asked import TIME
from chaos.experiment.command_line import FIELDS
from chaos.sweeps.model import SweepError, parse_seeds
from cluster.seams.randomness import fresh_seed
from loadgen.durations import seconds_of

CLIENT = FIELDS["client"].declared

Seeds = Annotated[
    str | None,
    typer.Option(help="N for the seeds 1 to N, or a comma-separated list of seeds. [dim]default: the sweep's[/dim]"),
]
Random = Annotated[
    int | None, typer.Option(min=1, max=1000, metavar="N", help="Run N random seeds instead of --seeds.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        parser=seconds_of,
        metavar=TIME,
        help="Duration of the load in each cell (90s, 5m). [dim]default: the sweep's[/dim]",
    ),
]
CellClient = Annotated[
    str | None,
    typer.Option(
        metavar=CLIENT.metavar,
        help=f"{CLIENT.help} [dim]default: the sweep's[/dim]",
        rich_help_panel=CLIENT.panel.value,
    ),
]
Minutes = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1440,
        metavar="N",
        help="Time limit for the whole sweep. After the first cell, none starts that would exceed it.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="DIM=VALUE[|VALUE],...", help="Run only these cells. Repeatable."),
]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="Stop after the first cell that is invalid or has no verdict.")
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Resume a sweep: run its cells (or those of --filter) that have no verdict yet."),
]
Shrink = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1440,
        metavar="MINUTES",
        help="Afterwards, shrink the invalid runs as 'gapless shrink' does, for at most this many minutes in total.",
    ),
]


def chosen_seeds(seeds: str | None, random: int | None) -> tuple[int, ...] | None:
    """The requested seeds; None for those of the sweep. Raises SweepError."""
    if random is None:
        return None if seeds is None else parse_seeds(seeds)
    if seeds is not None:
        raise SweepError("--seeds and --random are mutually exclusive; leave one of them out")
    return tuple(fresh_seed() for _ in range(random))
