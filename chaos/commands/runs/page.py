"""``index.html`` of a results directory: a table of its runs, each with a link to its report. Pure.

Owns the page. It needs no network and runs no script, as reports do.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from chaos.commands.runs.found import Row, size

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
div { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { padding: .35rem .7rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap }
td.anomalies { white-space: normal; min-width: 12rem }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.valid { color: light-dark(#17692c, #6fce86) } .invalid { color: light-dark(#a4161a, #ff8f8f); font-weight: 600 }
"""
_HEADS = ("run", "seed", "verdict", "anomalies", "allowed", "started (UTC)", "size")


def index_page(rows: Sequence[Row], base: Path) -> str:
    """The whole page. Links are relative to ``base``, where it is to lie."""
    heads = "".join(f"<th scope=col>{head}" for head in _HEADS)
    body = "\n".join(_row(row, base) for row in rows)
    total = size(sum(row.size_bytes for row in rows))
    return (
        '<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content="width=device-width">\n'
        f"<title>gapless runs</title>\n<style>{_STYLE}</style>\n<h1>Runs</h1>\n"
        f"<p>{len(rows)} runs, {total}, the newest first. Made by <code>gapless runs index</code>.</p>\n"
        f"<div><table>\n<thead><tr>{heads}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n</html>\n"
    )


def _row(row: Row, base: Path) -> str:
    place = row.path.relative_to(base).as_posix()
    name = escape(place)
    target = "report.html" if (row.path / "report.html").is_file() else ""
    linked = f'<a href="{quote(place)}/{target}">{name}</a>'
    verdict = escape(row.verdict)
    style = row.verdict if row.verdict in ("valid", "invalid") else "other"
    found = f"<td class=anomalies>{escape(row.anomalies)}<td class=anomalies>{escape(row.allowed)}"
    return (
        f"<tr><td>{linked}<td class=number>{row.seed}<td class={style}>{verdict}{found}"
        f"<td>{escape(row.when)}<td class=number>{size(row.size_bytes)}"
    )
