"""The reports of a sweep: its pages, and the table on the terminal. This module only writes the page files."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Sweep
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.report.ci import junit_xml, summary_md
from chaos.sweeps.report.markdown import sweep_md
from chaos.sweeps.report.page import sweep_html
from chaos.sweeps.shrunk import shrunk_of
from chaos.sweeps.summary import rows_of
from verifier.evidence.run_directory import write_text_atomic


def write_reports(directory: SweepDirectory, sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> None:
    """Write ``sweep.md``, ``sweep.html``, ``summary.md`` and ``junit.xml``. Raises ``OSError``."""
    rows = rows_of(sweep, outcomes)
    shrunk = {cell.name: found for cell in sweep.cells if (found := shrunk_of(directory, cell)) is not None}
    write_text_atomic(directory.sweep_md, sweep_md(sweep, rows, outcomes))
    write_text_atomic(directory.sweep_html, sweep_html(sweep, rows, outcomes))
    write_text_atomic(directory.summary_md, summary_md(sweep, outcomes, shrunk))
    write_text_atomic(directory.junit_xml, junit_xml(directory, sweep, outcomes))
