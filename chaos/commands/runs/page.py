"""``index.html`` of a results directory: a table of its runs, each with a link to its report. Pure.

Owns the page. It needs no network and runs no script, and looks as reports do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from chaos.commands.runs.found import RunRow, size
from verifier.report.html import self_contained

_HERE = Path(__file__).parent
_VERDICTS = ("valid", "invalid", "unknown")


def index_page(rows: Sequence[RunRow], base: Path) -> str:
    """The whole page. Links are relative to ``base``, the directory of the page."""
    return self_contained(
        _HERE,
        "index.html.j2",
        "index.css",
        rows=[_row(row, base) for row in rows],
        total=size(sum(row.size_bytes for row in rows)),
    )


def _row(row: RunRow, base: Path) -> dict[str, str | int]:
    place = row.path.relative_to(base).as_posix()
    report = "report.html" if (row.path / "report.html").is_file() else ""
    return {
        "place": place,
        "link": f"{quote(place)}/{report}",
        "seed": row.seed,
        "verdict": row.verdict,
        "style": row.verdict if row.verdict in _VERDICTS else "other",
        "anomalies": _counted(row.anomalies),
        "allowed": _counted(row.allowed),
        "when": row.when,
        "size": size(row.size_bytes),
    }


def _counted(found: str) -> str:
    """``NAME:N,NAME:N`` in a readable form."""
    words = {"": "", "none": "none", "?": "not judged"}
    return words[found] if found in words else ", ".join(each.replace(":", " ") for each in found.split(","))
