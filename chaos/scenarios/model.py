"""A scenario as a value, and its form as YAML. Owns the form; knows no option and no fault by name.

```yaml
title: a line
source: where it happened, and where that is told
story: what happened there
needs: what it takes, of settings and faults
shows: what a correct cluster shows
allowed: [lost-write]                 # anomalies that these settings allow, and that are expected; none if absent
options: {time_limit_s: 40, acks: "1"}   # of 'gapless run', by the names of its fields
injections:                           # as in a schedule
  - {at_s: 6.0, fault: kill-leader, duration_s: 3.0, target: {partition: 0}}
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.schedules.model import Schedule, ScheduleError, from_document
from loadgen.documents import DocumentError, load_yaml

_TEXTS = ("title", "source", "story", "needs", "shows")
_KEYS = (*_TEXTS, "allowed", "options", "injections")


class ScenarioError(ValueError):
    """The scenario is unknown, or its file cannot be read; the message names what is wrong."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. Each text is for people; ``options`` are fields of an experiment with the values that they take."""

    name: str
    title: str
    source: str
    story: str
    needs: str
    shows: str
    schedule: Schedule
    allowed: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def read_scenario(name: str, text: str) -> Scenario:
    """The scenario that is written so. Raises ScenarioError."""
    try:
        document = load_yaml(text)
        if not isinstance(document, dict):
            raise ScenarioError(f"scenario {name} is not a mapping")
        schedule = from_document({"injections": document.get("injections")})
    except (DocumentError, ScheduleError) as error:
        raise ScenarioError(f"scenario {name}: {error}") from error
    if unknown := [key for key in document if key not in _KEYS]:
        raise ScenarioError(f"scenario {name} has an unknown key {unknown[0]!r}; it has {', '.join(_KEYS)}")
    for key in _TEXTS:
        if not isinstance(document.get(key), str) or not document[key].strip():
            raise ScenarioError(f"scenario {name} needs {key!r}, a text")
    allowed, options = document.get("allowed") or [], document.get("options") or {}
    if not isinstance(allowed, list) or not isinstance(options, dict):
        raise ScenarioError(f"scenario {name}: 'allowed' is a list, and 'options' a mapping")
    texts = {key: " ".join(document[key].split()) for key in _TEXTS}
    values = {str(key): tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    return Scenario(name, **texts, schedule=schedule, allowed=tuple(map(str, allowed)), options=values)
