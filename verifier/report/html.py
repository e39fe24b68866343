"""Renders a page that needs no network, no script and no other file, with the style of all reports.

Owns the rendering, the filters for numbers and times, and the content security policy. The policy allows the page's own
style by its hash, and forbids everything else. Does not own the templates.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from verifier.evidence.how_many import how_many
from verifier.evidence.units import seconds_of_ms, seconds_of_ns

_HERE = Path(__file__).parent


#: The most characters of one text, unless a page sets another limit.
LONGEST_TEXT = 20_000


def self_contained(
    folder: Path, template: str, more_style: str | None = None, longest: int = LONGEST_TEXT, **values: Any
) -> str:
    """Fills ``template`` in ``folder`` with ``values``, and with ``style`` and ``policy``. Returns the page.

    ``more_style`` is a style sheet in the same folder. The filter ``cut`` shortens a text to ``longest`` characters.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["number"] = number
    environment.filters["how_many"] = how_many
    environment.filters["cut"] = lambda text: cut(str(text), longest)
    environment.filters["seconds"] = lambda ns: f"{seconds_of_ns(ns):.1f} s"
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    if more_style is not None:
        style += (folder / more_style).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return environment.get_template(template).render(style=Markup(style), policy=policy, **values)


def number(value: Any) -> str:
    """A figure for people: with commas between thousands, one digit after the point, and a dash for None."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def duration(milliseconds: float) -> str:
    """A duration for people: in ms, or in s from ten seconds on."""
    return f"{milliseconds:,.0f} ms" if milliseconds < 10_000 else f"{seconds_of_ms(milliseconds):,.1f} s"


def cut(text: str, longest: int) -> str:
    """The text. If it is longer than ``longest`` characters, its beginning and the number of missing characters."""
    return text if len(text) <= longest else f"{text[:longest]}... ({how_many(len(text) - longest, 'more character')})"
