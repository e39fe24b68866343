"""A schedule as a value, and as YAML. Owns the format of ``schedule.yaml``; does not know which faults exist.

```yaml
seed: 7      # without it, the run's
injections:
  - {at_s: 6.0, fault: kill-leader, duration_s: 3.0, target: {partition: 2}, parameters: {}}
```
``at_s`` counts from the start of the load, including the warm-up. Each fault defines its own ``target`` and
``parameters``. An injection waits until the previous ones are over, unless it has ``overlap: true``. An injection with
``replays: N`` makes the same random choices as injection N of the run with this seed. It does not wait for others, and
begins within milliseconds of ``at_s``, because its target is chosen in advance (docs/replay.md).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from loadgen.documents import DocumentError, load_yaml
from verifier.evidence.how_many import how_many


class ScheduleError(ValueError):
    """The schedule cannot be read. The message names the entry and how to fix it."""


@dataclass(frozen=True, slots=True)
class Injection:
    """One planned fault. ``at_s`` and ``duration_s`` are in seconds, ``at_s`` since the start of the load."""

    at_s: float
    fault: str
    duration_s: float
    target: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    overlap: bool = False
    #: The number, from 0, of the injection that this one repeats, in a run with the same seed.
    replays: int | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Injections in the order of their times, and the seed for their random choices. None: the run's seed is used."""

    seed: int | None
    injections: tuple[Injection, ...]

    def kinds(self) -> tuple[str, ...]:
        """The kinds of faults in the schedule, each once, in the order of their first injections."""
        return tuple(dict.fromkeys(injection.fault for injection in self.injections))

    def words(self) -> str:
        """The number of planned faults and the seed, in words."""
        return f"{how_many(len(self.injections), 'fault')} planned, seed {self.seed}"

    def seeded(self, seed: int) -> Schedule:
        """The same schedule with this seed, unless it already has one."""
        return self if self.seed is not None else replace(self, seed=seed)


def to_yaml(schedule: Schedule) -> str:
    """The text of ``schedule.yaml``."""
    document = {
        **({} if schedule.seed is None else {"seed": schedule.seed}),
        "injections": [
            {
                "at_s": injection.at_s,
                "fault": injection.fault,
                "duration_s": injection.duration_s,
                "target": dict(injection.target),
                "parameters": dict(injection.parameters),
                **({"overlap": True} if injection.overlap else {}),
                **({} if injection.replays is None else {"replays": injection.replays}),
            }
            for injection in schedule.injections
        ],
    }
    import yaml

    return yaml.safe_dump(document, sort_keys=False)


def from_yaml(text: str) -> Schedule:
    """Parse a schedule. Raises ScheduleError."""
    try:
        document = load_yaml(text)
    except DocumentError as error:
        raise ScheduleError(str(error)) from error
    return from_document(document)


def from_document(document: object) -> Schedule:
    """The schedule in a parsed YAML document. Raises ScheduleError."""
    if not isinstance(document, dict) or not isinstance(document.get("injections"), list):
        raise ScheduleError("a schedule is a mapping with 'seed' and a list 'injections'")
    if unknown := [key for key in document if key not in ("seed", "injections")]:
        raise ScheduleError(f"unknown key {unknown[0]!r} in the schedule; it has 'seed' and 'injections'")
    seed = document.get("seed")
    if "seed" in document and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise ScheduleError(f"'seed' of the schedule must be an integer, not {seed!r}; without it, it is the run's")
    injections = [_injection(index, entry) for index, entry in enumerate(document["injections"], 1)]
    return Schedule(seed, tuple(sorted(injections, key=lambda injection: injection.at_s)))


def _injection(index: int, entry: object) -> Injection:
    if not isinstance(entry, dict):
        raise ScheduleError(f"injection {index} of the schedule is not a mapping")
    known = ("at_s", "fault", "duration_s", "target", "parameters", "overlap", "replays")
    if unknown := [key for key in entry if key not in known]:
        near = difflib.get_close_matches(str(unknown[0]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
        raise ScheduleError(f"injection {index} of the schedule has an unknown key {unknown[0]!r}; {hint}")
    if not isinstance(entry.get("fault"), str):
        raise ScheduleError(f"injection {index} of the schedule needs 'fault', the name of one (gapless list faults)")
    numbers: dict[str, float] = {}
    for key, default in (("at_s", None), ("duration_s", 3.0)):
        value = entry.get(key, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < math.inf:
            given = f", not {value!r}" if key in entry else ""
            raise ScheduleError(f"injection {index} of the schedule needs {key!r}, a number of seconds{given}")
        numbers[key] = float(value)
    mappings: dict[str, dict[str, Any]] = {}
    for key in ("target", "parameters"):
        value = entry.get(key) or {}
        if not isinstance(value, dict):
            raise ScheduleError(f"{key!r} of injection {index} of the schedule must be a mapping")
        mappings[key] = value
    overlap = entry.get("overlap", False)
    if not isinstance(overlap, bool):
        raise ScheduleError(f"'overlap' of injection {index} of the schedule must be true or false")
    replays = entry.get("replays")
    if "replays" in entry and (not isinstance(replays, int) or isinstance(replays, bool) or replays < 0):
        raise ScheduleError(f"'replays' of injection {index} of the schedule must be the number of one, from 0")
    strikes = entry["fault"], numbers["duration_s"], mappings["target"], mappings["parameters"]
    return Injection(numbers["at_s"], *strikes, overlap, replays)
