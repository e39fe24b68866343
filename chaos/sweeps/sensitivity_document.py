"""``docs/sensitivity.md``, generated from sweeps that have run. Owns the page around the tables, and the adding up.

Run as ``python -m chaos.sweeps.sensitivity_document results/sensitivity/TIME/sweep.json ... > docs/sensitivity.md``. A
matrix of hours may be run in parts (``--filter``, ``--seeds``), each with its own ``sweep.json``.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from chaos.sweeps.model import SEED, Wanted
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.report.sensitivity_words import markdown
from chaos.sweeps.sensitivity import DEFECTS, EXERCISES, NAME, build
from chaos.sweeps.sensitivity_figures import Sensitivity, sensitivity_of
from verifier.evidence.run_directory import read_json
from verifier.markdown import code, inline, table

_WIDTH = 120

HEAD = """# Sensitivity

How many planted defects the verifier finds, how soon, and how often it accuses a run that has none.
`gapless sweep sensitivity` measures this ([sweep.md](sweep.md#sensitivity)): it runs each defect that needs neither
transactions nor groups (`gapless list defects`) under an exercise that makes it take effect, and the same exercise
without a defect. The sweep [`defects`](sweep.md#defects) covers the defects of transactions and groups.

This page is generated from the results of such a sweep, or of several that ran different cells of it:
`.venv/bin/python -m chaos.sweeps.sensitivity_document results/sensitivity/TIME/sweep.json > docs/sensitivity.md`.
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
    """The page as text; without figures, it says that nothing was measured yet, and what is planted."""
    return "\n".join(_lines(told)).rstrip("\n") + "\n"


def figures_in(paths: Iterable[Path]) -> Sensitivity | None:
    """The figures of all cells in these ``sweep.json`` together; None if nothing was judged.

    Raises ``OSError``; ``ValueError`` if one is not from this sweep, or if two ran the same cell.
    """
    outcomes: dict[str, CellOutcome] = {}
    seeds: set[int] = set()
    for path in paths:
        for name, seed, outcome in _cells(path):
            if outcome.status == "not run" and name in outcomes:
                continue
            if name in outcomes and outcomes[name].status != "not run":
                raise ValueError(f"{path} has the cell {name}, and another file has it too; count each run once")
            outcomes[name] = outcome
            seeds.add(seed)
    sweep = build(Wanted(seeds=tuple(sorted(seeds))))
    if unknown := sorted(outcomes.keys() - {cell.name for cell in sweep.cells}):
        raise ValueError(f"'gapless sweep {NAME}' has no cell {unknown[0]} now; run the sweep again")
    absent = CellOutcome("not asked")
    return sensitivity_of(sweep, {cell.name: outcomes.get(cell.name, absent) for cell in sweep.cells})


def _cells(path: Path) -> list[tuple[str, int, CellOutcome]]:
    """The cells that were to be run: name, seed, outcome. Raises ``OSError``, ``ValueError``."""
    told = read_json(path)
    if told.get("sweep") != NAME:
        raise ValueError(f"{path} is not from 'gapless sweep {NAME}'; use one that is")
    asked = (cell for cell in told["cells"] if cell["status"] != "not asked")
    return [(str(cell["cell"]), int(cell["labels"][SEED]), CellOutcome.from_json(cell)) for cell in asked]


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


def main(arguments: list[str]) -> int:
    """Print the page. Returns the exit status."""
    try:
        told = figures_in(map(Path, arguments))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 254
    sys.stdout.write(document(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
