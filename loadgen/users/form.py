"""Checks what Locust's web form requests of a standalone load. Owns the refusals, which the form shows. Starts nothing.

Locust itself accepts any text, and the load would then end at the first one that is invalid.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from flask import request

from loadgen.hosts import checked_host
from loadgen.settings import SettingsError
from loadgen.users.command_line import FORM
from loadgen.users.options import check_options, producer_count

START = "/swarm"
SETTLED = "a load keeps the settings of its first start; to change them, restart gapless load"


def refuse_bad_forms(environment: Any, readers: int, has_started: Callable[[], bool]) -> None:
    """Check each form before Locust gets it. ``readers`` is how many users read."""

    @environment.web_ui.app.before_request  # type: ignore[untyped-decorator]
    def look() -> dict[str, Any] | None:
        if request.path != START or request.method != "POST":
            return None
        refusal = refused(environment.parsed_options, request.form, readers, has_started=has_started())
        # the form of Locust's own refusals, whose message its page shows
        return None if refusal is None else {"success": False, "message": refusal, "host": environment.host}


def refused(options: Namespace, form: Mapping[str, str], readers: int, *, has_started: bool) -> str | None:
    """Why a load with these options, as the form changes them, cannot be started; None if it can."""
    asked = {name: form[name] for name in FORM if name in form}
    if has_started:
        changed = [name for name, text in asked.items() if text != _shown(getattr(options, name))]
        return f"{', '.join(changed)}: {SETTLED}" if changed else None
    candidate = Namespace(**{**vars(options), **asked})
    try:
        if form.get("host"):
            checked_host(form["host"])
        check_options(candidate)
        if form.get("user_count", "").isdecimal():
            producer_count(candidate, int(form["user_count"]), readers)
    except SettingsError as error:
        return str(error)
    return None


def _shown(value: Any) -> str:
    """The value of an option as the form shows it."""
    return ",".join(value) if isinstance(value, list) else "" if value is None else str(value)
