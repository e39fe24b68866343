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

_HERE = Path(__file__).parent


def self_contained(folder: Path, template: str, more_style: str | None = None, **values: Any) -> str:
    """``template`` of ``folder``, filled; it is given ``style`` and ``policy``. ``more_style`` is a file beside it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["number"] = number
    environment.filters["seconds"] = lambda ns: f"{ns / 1e9:.1f} s"
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    if more_style is not None:
        style += (folder / more_style).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return environment.get_template(template).render(style=Markup(style), policy=policy, **values)


def number(value: Any) -> str:
    """A figure for a person: thousands by commas, a fraction with one digit, a dash for what is not known."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
