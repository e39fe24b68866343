"""``docs/sensitivity.md``, generated from a sweep that has run. Owns the page around the tables.

Run as ``python -m chaos.sweeps.sensitivity_document results/sensitivity/TIME/sweep.json > docs/sensitivity.md``.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from chaos.sweeps.report.sensitivity_words import markdown
from chaos.sweeps.sensitivity import DEFECTS, EXERCISES, HEALTHY
from chaos.sweeps.sensitivity_figures import Sensitivity
from verifier.evidence.run_directory import read_json
from verifier.markdown import code, inline, table

_WIDTH = 120

HEAD = """# Sensitivity

How many planted defects the verifier finds, how soon, and how often it accuses a run that has none.
`gapless sweep sensitivity` measures this ([sweep.md](sweep.md#sensitivity)): it runs each defect that needs neither
transactions nor groups (`gapless list defects`) under an exercise that makes it take effect, and the same exercise
without a defect. The sweep [`defects`](sweep.md#defects) covers the defects of transactions and groups.

This page is generated from the results of such a sweep:
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


def figures_in(path: Path) -> Sensitivity:
    """The figures in a ``sweep.json``. Raises ``OSError``, and ``ValueError`` if the sweep plants no defects."""
    told = read_json(path).get("sensitivity")
    if told is None:
        raise ValueError(f"{path} is not from a sweep that plants defects; use one from 'gapless sweep sensitivity'")
    for each in (*told["defects"], *told["controls"]):
        # as it was called in sweeps of before
        each.setdefault("exercise", each.pop("scenario", ""))
    figures: Sensitivity = told
    return figures


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
    names = ", ".join(code(name) for name in EXERCISES if name != HEALTHY)
    yield from textwrap.wrap(
        f"`{HEALTHY}` has no faults. These exercises have faults: {names}. Some of them are the beginning of the "
        "[scenario](scenarios.md) with that name.",
        _WIDTH,
        break_on_hyphens=False,
    )


def main(arguments: list[str]) -> int:
    """Print the page. Returns the exit status."""
    if len(arguments) > 1:
        sys.stderr.write("give the path of one sweep.json, or no argument\n")
        return 254
    try:
        told = figures_in(Path(arguments[0])) if arguments else None
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 254
    sys.stdout.write(document(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
