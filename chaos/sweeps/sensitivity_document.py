"""``docs/sensitivity.md``, made of a sweep that has run.

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

How many planted defects the verifier finds, how soon, and how often it accuses a run in which nothing is planted.
`gapless sweep sensitivity` measures it ([sweep.md](sweep.md#sensitivity)): each defect that needs no transactions
(`gapless list defects`) under the scenario that makes it take effect, next to the same runs without it. Those of
transactions and groups are in the sweep [`defects`](sweep.md#defects).

This page is made of what such a sweep left:
`.venv/bin/python -m chaos.sweeps.sensitivity_document results/sensitivity/TIME/sweep.json > docs/sensitivity.md`.
"""

COLUMNS = """- `exercised`: in how many runs the defect took effect, as the brokers noted in `nodes/*/defects.jsonl`
- `found`: in how many of these the verdict was invalid; `named`: in how many a check that names the defect found
  something that the settings do not allow
- `true share`: between which bounds the share of `named` lies, as exact (Clopper-Pearson) intervals have it
- `records`, `seconds`: what had been acknowledged, and the time since the load began, when the first send or poll ended
  that shows it; the median of the runs
- a run that is unknown accuses no one and clears no one: it is not among those of `false alarms`
"""


def document(told: Sensitivity | None) -> str:
    """The page as text; without figures, it says what would be measured."""
    return "\n".join(_lines(told)).rstrip("\n") + "\n"


def figures_in(path: Path) -> Sensitivity:
    """What a ``sweep.json`` tells. Raises ``ValueError`` for one of another sweep, ``OSError``."""
    told: Sensitivity | None = read_json(path).get("sensitivity")
    if told is None:
        raise ValueError(f"{path} has no figures of a sweep of defects")
    return told


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
        ("defect", "scenario", "found as", "modeled on"),
        [
            [code(defect), code(each.exercise), ", ".join(map(code, each.finds)), inline(each.source)]
            for defect, each in DEFECTS.items()
        ],
    )
    names = ", ".join(code(name) for name in EXERCISES if name != HEALTHY)
    yield from textwrap.wrap(
        f"`{HEALTHY}` has no faults. The others have: {names}. Some are the beginning of the "
        "[scenario](scenarios.md) of that name.",
        _WIDTH,
        break_on_hyphens=False,
    )


def main(arguments: list[str]) -> int:
    """Print the page. Returns the exit status."""
    if len(arguments) > 1:
        sys.stderr.write("name one sweep.json, or none\n")
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
