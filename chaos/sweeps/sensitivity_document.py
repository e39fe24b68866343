"""Generates ``docs/sensitivity.md`` from sweeps that have run. Owns the text around the tables, and merges the sweeps.

Run as ``python -m chaos.sweeps.sensitivity_document --runs docs/sensitivity.json SWEEP.JSON ...``, with its output in
``docs/sensitivity.md``. The matrix takes hours, so it may be run in parts (``--filter``, ``--seeds``), each with its
own ``sweep.json``, and on several days. The file of ``--runs`` keeps all runs (``measured_runs``): they count, too, and
the new ones are added to it. Does not own the figures (``sensitivity_figures``) or the tables (``sensitivity_words``).
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from chaos.sweeps.measured_runs import check_asked, keep_runs, kept_runs, new_runs, skipped_runs, with_new
from chaos.sweeps.model import Wanted
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.report.sensitivity_words import markdown
from chaos.sweeps.sensitivity import DEFECTS, EXERCISES, NAME, build
from chaos.sweeps.sensitivity_figures import Sensitivity, sensitivity_of
from verifier.telling.markdown import code, inline, table

_WIDTH = 120

HEAD = """# Sensitivity

How many planted defects the verifier finds, how soon, and how often it accuses a run that has none.
`gapless sweep sensitivity` measures this ([sweep.md](sweep.md#sensitivity)): it runs each defect that needs neither
transactions nor groups (`gapless list defects`) under an exercise that makes it take effect, and the same exercise
without a defect. The sweep [`defects`](sweep.md#defects) covers the defects of transactions and groups.

This page is generated from the results of such a sweep, or of several that ran different cells of it:
`.venv/bin/python -m chaos.sweeps.sensitivity_document --runs docs/sensitivity.json results/sensitivity/TIME/sweep.json
> docs/sensitivity.md`. [sensitivity.json](sensitivity.json) has every run that counts, one per line. Of several runs of
a cell by the same commit, the first one that is valid or invalid counts; a run by another commit replaces it.
"""

COLUMNS = """- `exercised`: in how many runs the defect took effect, as the brokers noted in `nodes/*/defects.jsonl`
- `found`: in how many of these the verdict was `invalid`; `named`: in how many of these a check that names the defect
  found an anomaly that the settings do not allow
- `true share`: the 95% confidence interval of `named` as a share of `exercised` (exact, Clopper-Pearson)
- `records`, `seconds`: acknowledged records, and seconds since the load began, at the end of the first send or poll
  that shows the anomaly; medians of the runs
- `false alarms`: invalid runs without a defect, of those that are valid or invalid; unknown runs are counted separately
"""


def document(told: Sensitivity | None) -> str:
    """The page as text. Without figures, it says that nothing was measured yet, and which defects are planted."""
    return "\n".join(_lines(told)).rstrip("\n") + "\n"


def figures_in(
    paths: Iterable[Path], runs: Path | None = None, note: Callable[[str], None] = lambda _: None
) -> Sensitivity | None:
    """The figures of all cells in these ``sweep.json`` files together; None if nothing was judged.

    ``runs`` is the file that keeps earlier runs. These count, too, and the new ones are added to the file, except those
    that do not count; ``note`` gets a line that names them.

    Raises ``OSError``. Raises ``ValueError`` if a file is not from this sweep or contradicts itself, if two files have
    a run of the same cell, or if a run was made with other settings than its cell has now.
    """
    measured = new_runs(paths)
    if runs is not None:
        kept = kept_runs(runs) if runs.exists() else {}
        skipped = skipped_runs(kept, measured)
        measured = with_new(kept, measured)
    sweep = build(Wanted(seeds=tuple(sorted({run.seed for run in measured.values()}))))
    if unknown := sorted(measured.keys() - {cell.name for cell in sweep.cells}):
        raise ValueError(f"'gapless sweep {NAME}' has no cell {unknown[0]} now; run the sweep again")
    check_asked(measured, sweep.cells)
    if runs is not None:
        keep_runs(runs, measured)
        if skipped:
            note(
                "skipped, since the kept run counts (the first with a verdict of a cell by one commit): "
                f"{', '.join(sorted(skipped))}"
            )
    absent = CellOutcome("not asked")
    outcomes = {name: run.outcome for name, run in measured.items()}
    return sensitivity_of(sweep, {cell.name: outcomes.get(cell.name, absent) for cell in sweep.cells})


def _lines(told: Sensitivity | None) -> Iterator[str]:
    yield HEAD
    yield "## Results"
    yield ""
    if told is None:
        yield "Not measured yet."
        yield ""
    else:
        yield from markdown(told)
        yield COLUMNS
    yield "## What is planted"
    yield ""
    yield from table(
        ("defect", "exercise", "found as", "modeled on"),
        [
            [code(defect), code(each.exercise), ", ".join(map(code, each.finds)), inline(each.source)]
            for defect, each in DEFECTS.items()
        ],
    )
    faulty, quiet = (
        ", ".join(code(name) for name, each in EXERCISES.items() if bool(each.hits) is has_faults)
        for has_faults in (True, False)
    )
    yield from textwrap.wrap(
        f"Without faults: {quiet}. With faults: {faulty}. Some of these are the beginning of the "
        "[scenario](scenarios.md) with that name.",
        _WIDTH,
        break_on_hyphens=False,
    )


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main(arguments: list[str]) -> int:
    """Print the page. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Print docs/sensitivity.md.")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="runs of earlier sweeps, to which these are added")
    parser.add_argument("sweeps", type=Path, nargs="*", metavar="SWEEP.JSON")
    asked = parser.parse_args(arguments)
    try:
        told = figures_in(asked.sweeps, asked.runs, _tell)
    except (OSError, ValueError) as error:
        _tell(str(error))
        return 254
    sys.stdout.write(document(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
