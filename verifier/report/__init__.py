"""Writes the report of a run: ``verdict.json``, ``summary.md``, ``junit.xml`` and ``report.html``. Owns how they look.

Takes a finished verdict, and judges nothing itself. Does not own the evidence around anomalies
(``verifier.surroundings``).
"""

from __future__ import annotations

from collections.abc import Sequence

from verifier.evidence.run_directory import RunDirectory, write_json_atomic, write_text_atomic
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import read_all_series
from verifier.report.junit import junit_xml
from verifier.report.occasions import Occasions
from verifier.report.page import report_html
from verifier.report.summary import summary_md
from verifier.report.words import headline
from verifier.surroundings.model import Surroundings
from verifier.verdict import Verdict
from verifier.witness.effectiveness import Injected


def write_reports(
    directory: RunDirectory,
    run: RunModel,
    injected: Sequence[Injected],
    verdict: Verdict,
    around: Surroundings | None = None,
) -> None:
    """Writes all four files, each atomically. Raises ``OSError``.

    ``verdict.json`` comes last, so that the others exist once it does. ``around`` has the evidence around anomalies;
    without it, the page does not show any.
    """
    try:
        series = read_all_series(directory.loadgen_dir)
    except (OSError, ValueError, TypeError):
        series = []  # the verdict says which of them cannot be read
    write_text_atomic(directory.report_html, report_html(run, injected, verdict, series, around))
    occasions = Occasions.of(run, injected, series, around)
    write_text_atomic(
        directory.summary_md, summary_md(run, injected, verdict, occasions, {} if around is None else around.reached)
    )
    write_text_atomic(directory.junit_xml, junit_xml(directory.path, run, verdict, occasions))
    write_json_atomic(directory.verdict_json, {**verdict.to_json(), "headline": headline(verdict)})
