"""Checks whether a run's histories are complete, so that an export of them can be judged. Owns the refusal.

If the history of a producer is missing, every value of it that was read looks like one that no producer sent, so an
incomplete export would accuse a correct cluster. A run whose histories are missing, altered or cut off is therefore not
exported. A process that the run itself killed leaves a history without an end mark; the export says so. Does not own
the form of an export.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.exits import BadRequest
from cluster.process.invocation import command
from verifier.completeness.killed import KILLED
from verifier.evidence import seal
from verifier.evidence.fault_kinds import UNCLEAN_ORDER
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.excuses.expectation import Expectation
from verifier.operations.anomalies import NAMES

#: The reason in the refusal to export.
BLAMED = "judged by what is left, a correct cluster would look faulty, so nothing was exported; restore the original"
MOST_NAMED = 6


def excused(given: Path, directory: RunDirectory) -> list[str]:
    """Lines about anomalies that the run's settings or a requested fault allow, which its export does not show.

    The verdict has the long reasons.
    """
    run = RunModel.from_json(directory.read_run())
    allowances = Expectation.of(run).allowances
    checks = [check for check in dict.fromkeys(each.check for each in allowances) if check in NAMES]
    if not checks:
        return []
    judging = command(["verify", str(given)])
    what = "settings and faults" if UNCLEAN_ORDER in run.faults_requested else "settings"
    return [f"the run's {what} may excuse {', '.join(checks)}, which an export cannot show: '{judging}' judges that"]


def check_files(given: Path, directory: RunDirectory) -> list[str]:
    """Lines to tell about the files of histories. Raises BadRequest if one is missing or differs from the seal."""
    declared = RunModel.from_json(directory.read_run()).evidence.processes
    absent = [f"history/{each.name}.arrow" for each in declared if not directory.history(each.name).is_file()]
    if absent:
        raise BadRequest(f"{given}: run.json declares {_named(absent)}, but there is no such file; {BLAMED}")
    try:
        differences = seal.compare(directory, seal.read(directory), "history/")
    except FileNotFoundError:
        return ["cannot tell whether the histories are as the run left them: there is no seal.json"]
    except (OSError, ValueError) as error:
        return [f"cannot tell whether the histories are as the run left them: {error}"]
    if differences:
        altered = _named([f"{each.path} ({each.what})" for each in differences])
        raise BadRequest(f"{given}: altered since the run was sealed: {altered}; {BLAMED}")
    return []


def check_ends(given: Path, directory: RunDirectory, unfinished: Sequence[str]) -> Iterator[str]:
    """Lines to tell about histories without an end mark. Raises BadRequest if the run did not kill their processes."""
    run = RunModel.from_json(directory.read_run())
    killed = {child.name for child in run.children if child.exit_code == KILLED}
    for name in unfinished:
        declared = run.evidence.process(name)
        if declared is None or declared.child not in killed:
            raise BadRequest(
                f"{given}: history/{name}.arrow has no end, and run.json does not say that {name} was killed; {BLAMED}"
            )
        yield f"the run killed {name}: its last half second may not be in history/{name}.arrow"


def _named(words: Sequence[str]) -> str:
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    return f"{', '.join(words[:MOST_NAMED])}{more}"
