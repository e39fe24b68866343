"""Whether a schedule that was given can be played in this experiment: looked at before anything is started. Pure.

Owns the refusals that name an injection. What a schedule is, and the faults' own rules, are others'.
"""

from __future__ import annotations

import math
from pathlib import Path

from chaos.experiment.errors import SettingsError
from chaos.schedules.model import Injection, Schedule


def check_schedule(path: Path, schedule: Schedule, time_limit_s: float) -> None:
    """Raises SettingsError for the first injection that this experiment has no time for."""
    for each in schedule.injections:
        if _ends_s(each) > time_limit_s:
            raise SettingsError(f"--schedule {path}: {_too_late(each, schedule, time_limit_s)}")


def _too_late(injection: Injection, schedule: Schedule, time_limit_s: float) -> str:
    late = "begins" if injection.at_s >= time_limit_s else f"lasts until {_ends_s(injection):g} s,"
    needed_s = math.ceil(max(map(_ends_s, schedule.injections)))
    return (
        f"{injection.fault} at {injection.at_s:g} s {late} after the {time_limit_s:g} s of --time-limit; "
        f"give --time-limit {needed_s}s, or take it out"
    )


def _ends_s(injection: Injection) -> float:
    # times are written with hundredths; their sum is none exactly
    return round(injection.at_s + injection.duration_s, 6)
