"""The pages of ``gapless serve``: listing, comparison, a directory, a refusal. Pure, except that it checks file types.

They look as reports do, need no network, and run no script. Owns links and words; templates are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from chaos.commands.runs.found import LIVE, size
from chaos.commands.serve.choice import KINDS, MOST_SHOWN, ORDERS, Choice, chosen, verdicts_of
from chaos.commands.serve.listed import Listed
from verifier.report.html import self_contained

_HERE = Path(__file__).parent
_STYLED = ("valid", "invalid", "unknown", "live")
#: A page with live entries reloads after this time.
REFRESH_S = 5
#: The most names of one directory on a page.
MOST_NAMES = 2000


def listing(title: str, here: str, entries: Sequence[Listed], choice: Choice, parent: str = "") -> str:
    """A table of entries below a form that filters them. ``parent`` is the sweep to which they belong, if any."""
    found = chosen(entries, choice)
    return _page(
        "listing.html.j2",
        title=title,
        here=here,
        parent=parent,
        parent_link=f"/files/{quoted(parent)}/sweep.html",
        choice=choice,
        kinds=KINDS,
        verdicts=verdicts_of(entries),
        heads=[_head(name, here, choice) for name in ORDERS],
        rows=[_row(entry) for entry in found[:MOST_SHOWN]],
        beyond=max(0, len(found) - MOST_SHOWN),
        of=len(entries),
        refresh_s=REFRESH_S if any(entry.verdict == LIVE for entry in entries) else 0,
    )


def comparison(places: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a column for each place, in which differing rows are highlighted."""
    lines = [{"what": row[0], "values": row[1:], "differs": len(set(row[1:])) > 1} for row in rows]
    return _page("comparison.html.j2", title="Comparison", places=[(each, _files(each)) for each in places], rows=lines)


def directory(place: str, paths: Sequence[Path]) -> str:
    """The names in a directory; one with a report leads to it first."""
    names = [f"{path.name}/" if path.is_dir() else path.name for path in paths]
    links = [(name, f"{_files(place)}/{quoted(name)}") for name in names[:MOST_NAMES]]
    up = place.rpartition("/")[0]
    return _page(
        "directory.html.j2",
        title=place,
        links=links,
        beyond=max(0, len(names) - MOST_NAMES),
        up=_files(up) if up else "/",
    )


def refusal(title: str, why: str) -> str:
    """Why there is no page."""
    return _page("refusal.html.j2", title=title, why=why)


def _page(template: str, **values: object) -> str:
    filled: Callable[..., str] = self_contained
    return filled(_HERE, template, "serve.css", **values)


def quoted(place: str) -> str:
    """A place within an address. A name need not be UTF-8: the sender of a run named its files."""
    return quote(place, errors="surrogateescape")


def _files(place: str) -> str:
    return f"/files/{quoted(place)}"


def _head(order: str, here: str, choice: Choice) -> dict[str, str]:
    """A heading that sorts by its column, and in the other direction if clicked again."""
    is_current = choice.order == order
    direction = "ascending" if is_current and choice.descending else "descending"
    asked = {
        "kind": choice.kind,
        "verdict": choice.verdict,
        "text": choice.text,
        "order": order,
        "direction": direction,
    }
    sorted_so = ("descending" if choice.descending else "ascending") if is_current else "none"
    return {"name": order, "link": f"{here}?{urlencode(asked)}", "sorted": sorted_so}


def _row(entry: Listed) -> dict[str, str]:
    return {
        "kind": entry.kind,
        "place": entry.place,
        "link": f"{_files(entry.place)}/{entry.page}",
        "cells": f"/sweep/{quoted(entry.place)}" if entry.kind == "sweep" else "",
        "name": entry.name,
        "seed": "" if entry.seed is None else str(entry.seed),
        "verdict": entry.verdict,
        "style": entry.verdict if entry.verdict in _STYLED else "other",
        "details": entry.details.replace(":", " ").replace(",", ", ") if entry.kind == "run" else entry.details,
        "when": entry.started[:16].replace("T", " "),
        "size": size(entry.size_bytes) if entry.size_bytes else "",
    }
