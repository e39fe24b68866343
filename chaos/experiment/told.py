"""Makes an experiment from a named scenario. Pure, except that it reads the scenario.

Other options override those of the scenario, but faults cannot be overridden: a scenario has its own schedule. Does not
own the scenarios (``chaos.scenarios``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.forms import ScheduleFile
from chaos.scenarios.catalogue import find_scenario
from chaos.scenarios.model import ScenarioError

#: Options that cannot be combined with a scenario.
_EXCLUDED = {"faults": "--faults", "overlap": "--overlap", "schedule": "--schedule"}
#: Options that a scenario cannot set: where the run is written, and what its seed and faults are.
_NOT_ITS_OWN = frozenset({"seed", "scenario", "schedule", "faults", "overlap", "name", "out", "keep", "spark_master"})


def check_beside(name: str, given: Mapping[str, Any]) -> None:
    """Raises ExperimentError if options for faults are given together with a scenario."""
    for field, option in _EXCLUDED.items():
        if given.get(field):
            raise ExperimentError(f"--scenario {name} and {option} are mutually exclusive: a scenario has its schedule")


def scenario_fields(name: str) -> dict[str, Any]:
    """The fields of ``Asked`` that this scenario sets, including its schedule. Raises ExperimentError."""
    try:
        scenario = find_scenario(name)
    except ScenarioError as error:
        raise ExperimentError(f"--scenario: {error}") from error
    known = {each.name for each in fields(Asked)} - _NOT_ITS_OWN
    if unknown := [field for field in scenario.options if field not in known]:
        raise ExperimentError(f"scenario {name} has an option {unknown[0]!r}, which it cannot decide")
    return {**scenario.options, "schedule": ScheduleFile(Path(name), scenario.schedule)}


def told_by(scenario: str, seed: int, **more: Any) -> Asked:
    """The experiment of a scenario, with ``more`` fields that override it. Raises ExperimentError."""
    return Asked(**{**scenario_fields(scenario), **more, "scenario": scenario, "seed": seed})
