"""The report of a run: ``verdict.json``, ``summary.md``, ``junit.xml`` and ``report.html``. Owns how they look.

Everything here takes a finished verdict and adds no judgment of its own.
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
    """Write all four files, each whole. ``verdict.json`` comes last: anyone who sees it finds the others. Raises
    OSError.

    ``around`` is what was gathered of the anomalies' surroundings; without it the page does without.
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
