"""A page that needs no network, no script and no other file: a template, the style of our reports, and their policy.

The page's own style is allowed by its hash; everything else is forbidden by its content security policy.
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


#: Characters of one text at most, unless a page says otherwise.
LONGEST_TEXT = 20_000


def self_contained(
    folder: Path, template: str, more_style: str | None = None, longest: int = LONGEST_TEXT, **values: Any
) -> str:
    """``template`` of ``folder``, filled; it is given ``style`` and ``policy``. ``more_style`` is a file beside it.

    The filter ``cut`` shortens a text to ``longest`` characters.
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
    """A figure for people: thousands by commas, a fraction with one digit, a dash for what is not known."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def duration(milliseconds: float) -> str:
    """A time for people: milliseconds, or from ten seconds on seconds."""
    return f"{milliseconds:,.0f} ms" if milliseconds < 10_000 else f"{seconds_of_ms(milliseconds):,.1f} s"


def cut(text: str, longest: int) -> str:
    """The beginning of a text that is too long, and how much of it is missing."""
    return text if len(text) <= longest else f"{text[:longest]}... ({how_many(len(text) - longest, 'more character')})"
