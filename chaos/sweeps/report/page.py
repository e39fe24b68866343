"""``sweep.html``: one page that needs no network, no script and no other file.

Owns what is on the page. Does not own how plots are computed (``plots``) or the texts of the table (``words``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from chaos.sweeps.model import EFFECTS, UNKNOWN, Sweep
from chaos.sweeps.outcome import CellOutcome, made_by
from chaos.sweeps.reach import kept, together
from chaos.sweeps.report import sensitivity_words
from chaos.sweeps.report.plots import matrix, throughputs
from chaos.sweeps.report.words import HEADINGS, WORDS, columns, figures
from chaos.sweeps.sensitivity_figures import Sensitivity, sensitivity_of
from chaos.sweeps.summary import MatrixRow, claims_line, counted, left_out, ran
from verifier.report.html import self_contained

_HERE = Path(__file__).parent
#: The statuses of cells without a run to show.
_NOT_RUN = ("inapplicable", "not asked", "not run")


def sweep_html(sweep: Sweep, rows: Sequence[MatrixRow], outcomes: Mapping[str, CellOutcome]) -> str:
    """The page as text."""
    shown = ran(rows)
    wanted = columns(shown)
    told = sensitivity_of(sweep, outcomes)
    cells = [(cell, outcomes[cell.name]) for cell in sweep.cells if outcomes[cell.name].status not in _NOT_RUN]
    return self_contained(
        _HERE,
        "sweep.html.j2",
        "sweep.css",
        sweep=sweep,
        rows=rows,
        headings=[*(shown[0].labels if shown else ()), *(HEADINGS[index] for index in wanted)],
        dimmed=HEADINGS,
        words=[*(shown[0].labels if shown else ()), *WORDS],
        table=[[*row.labels.values(), *(figures(row)[index] for index in wanted)] for row in shown],
        left_out=left_out(rows),
        counts=counted(list(outcomes.values())),
        claims=claims_line(rows),
        commits=made_by(list(outcomes.values())),
        plot=matrix(sweep, rows),
        speeds=throughputs(sweep, rows),
        effects=[
            *((effect.name, effect.name.replace(" ", "-"), effect.check) for effect in EFFECTS),
            (UNKNOWN, UNKNOWN, "the producer does not know the outcome"),
        ],
        cells=cells,
        reached=together(sweep, outcomes).figures(),
        kept=kept(sweep, outcomes),
        sensitivity=[] if told is None else sensitivity_words.sentences(told),
        sensitivity_tables=[] if told is None else _sensitivity_tables(told),
        sensitivity_words=("defect", "exercise", "as"),
        remarks=any(outcome.forbidden or outcome.reasons for _, outcome in cells),
    )


def _sensitivity_tables(told: Sensitivity) -> list[tuple[Sequence[str], list[list[str]]]]:
    """The headings and rows of each table that has rows."""
    tables = [
        (sensitivity_words.HEADINGS, sensitivity_words.rows(told)),
        (sensitivity_words.CONTROL_HEADINGS, sensitivity_words.control_rows(told)),
    ]
    return [(headings, rows) for headings, rows in tables if rows]
