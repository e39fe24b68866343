"""``gapless run``: one experiment from its options to its exit status. Owns neither; the work is the conductor's.

The options are declared in ``chaos.experiment.asked``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from chaos.commands.foreign import fitted_to_target
from chaos.commands.session import conduct
from chaos.commands.talk import Quiet, Verbose, talk_of
from chaos.exits import VERDICTS, BadRequest, Exit
from chaos.experiment.asked import Asked
from chaos.experiment.command_line import asked_by, with_options, words
from chaos.experiment.declaration import Panel
from chaos.experiment.record_size import check_record_size
from chaos.experiment.resolve import plan, resolve
from chaos.experiment.swarmed import renamed
from cluster.process.invocation import command


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", help=HELP)(with_options(run))


HELP = """Run one experiment: start and load a cluster, inject seeded faults, heal, read everything, verify.

The last lines on stdout are RESULT, the report's path and a repro line. Exit status: 0 valid, 1 invalid, 2 unknown,
130 interrupted before there was a verdict, 254 bad arguments or configuration, 255 the harness itself failed.
"""


def run(
    given: Mapping[str, Any],
    *,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print only the contents of verdict.json to stdout; RESULT goes to stderr.",
            rich_help_panel=Panel.OUTPUT.value,
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Resolve the options, then conduct the run."""
    talk = talk_of(quiet=quiet, verbose=verbose)
    try:
        asked, renamings = renamed(asked_by(given))
        experiment, warnings = resolve(fitted_to_target(asked))
        warnings = [*renamings, *warnings, *check_record_size(experiment)]
    except ValueError as error:
        raise BadRequest(str(error)) from error
    verdict = conduct(experiment, plan(experiment), warnings, repro(asked), as_json=as_json, talk=talk)
    return int(VERDICTS.get(verdict, Exit.HARNESS_FAILED))


def repro(asked: Asked) -> str:
    """The command that requests the same run."""
    return command(words(asked))
