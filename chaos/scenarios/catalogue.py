"""The scenarios that come with us: the files beside this one, by their names. Owns finding and reading them."""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path

from chaos.scenarios.model import Scenario, ScenarioError, read_scenario
from loadgen.documents import read_text

_DIRECTORY = Path(__file__).parent


def names() -> list[str]:
    """The names of all scenarios, sorted."""
    return sorted(path.stem for path in _DIRECTORY.glob("*.yaml"))


@cache
def find_scenario(name: str) -> Scenario:
    """The scenario of that name. Raises ScenarioError with the nearest name."""
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "'gapless list scenarios' shows all"
        raise ScenarioError(f"unknown scenario {name!r}; {hint}")
    return read_scenario(name, read_text(_DIRECTORY / f"{name}.yaml"))


def scenarios() -> list[Scenario]:
    """All of them, by name. Raises ScenarioError."""
    return [find_scenario(name) for name in names()]
