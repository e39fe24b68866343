"""The files of a judgment take the place of the former ones at its end, together. Owns the order, not the contents.

While a run is judged, its previous verdict stays: anyone who ends the verifier loses nothing, and tells by
``verdict.json`` not having changed that nothing was judged.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from verifier.evidence.outputs import BESIDE, check_outputs
from verifier.evidence.run_directory import RunDirectory, read_json


class _Replacement(RunDirectory):
    """The same evidence, and a place of its own for what is written about it."""

    __slots__ = ()

    @property
    def place(self) -> Path:
        return self.path / BESIDE

    @property
    def verdict_json(self) -> Path:
        return self.place / "verdict.json"

    @property
    def anomalies_dir(self) -> Path:
        return self.place / "anomalies"

    @property
    def report_html(self) -> Path:
        return self.place / "report.html"

    @property
    def summary_md(self) -> Path:
        return self.place / "summary.md"

    @property
    def junit_xml(self) -> Path:
        return self.place / "junit.xml"


@contextlib.contextmanager
def replacing(directory: RunDirectory) -> Iterator[RunDirectory]:
    """The run directory to write results to. They replace the former ones when the context ends without an exception.

    Until then the former ones stay as they are. Raises ``OSError``, and ``InTheWay`` before anything is touched.
    """
    check_outputs(directory.path)
    beside = _Replacement(directory.path)
    if beside.place.exists():
        shutil.rmtree(beside.place)
    beside.place.mkdir()
    try:
        yield beside
        _put(directory, beside)
    finally:
        shutil.rmtree(beside.place, ignore_errors=True)


def _put(directory: RunDirectory, beside: _Replacement) -> None:
    if directory.anomalies_dir.exists():
        # may be refused, as to remove what is in it may: then the previous verdict is still there
        directory.anomalies_dir.replace(beside.place / "former")
    # no verdict from here until the last rename: a former one must never be beside files that are not its own
    directory.verdict_json.unlink(missing_ok=True)
    for new, old in (
        (beside.anomalies_dir, directory.anomalies_dir),
        (beside.report_html, directory.report_html),
        (beside.summary_md, directory.summary_md),
        (beside.junit_xml, directory.junit_xml),
        (beside.verdict_json, directory.verdict_json),
    ):
        if new.exists():
            new.replace(old)


def recorded(directory: RunDirectory) -> str | None:
    """The verdict that is in ``verdict.json``; None if there is none, or it cannot be read."""
    try:
        verdict = read_json(directory.verdict_json).get("verdict")
    except (OSError, ValueError):
        return None
    return verdict if isinstance(verdict, str) else None
