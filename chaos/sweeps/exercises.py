"""Exercises, under which planted defects fire, and the cells of a matrix of defects. Pure.

Owns how the cells are made: each defect under its exercise, next to a run without defects, which the defects of an
exercise share. The sweeps of defects own which defects and exercises there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from chaos.experiment.asked import Asked
from chaos.experiment.told import scenario_fields
from chaos.schedules.model import Injection, Schedule
from chaos.sweeps.model import Cell, Wanted
from loadgen.settings import CONFLUENT, NATIVE

#: What the run without a defect is called.
NONE = "none"
#: As few processes as possible, since each costs a second: one reader that asks for ends, and a final one of another
#: client.
_READERS, _FINAL_READERS = (NATIVE,), (CONFLUENT,)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A run in which certain defects fire. ``hits`` are its faults, if any.

    ``client`` replaces the one that was asked for; ``options`` are further fields of an experiment.
    """

    time_limit_s: float
    hits: tuple[Injection, ...] = ()
    client: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planted:
    """Under which exercise a defect fires, and the checks that name it: one of them must find something.

    ``probability`` is for a defect that would leave nothing intact; ``beside`` are defects without which it cannot
    fire, and which break no promise themselves. ``source`` names the real bug, for people.
    """

    exercise: str
    finds: tuple[str, ...]
    probability: str = ""
    beside: tuple[str, ...] = ()
    source: str = ""

    def texts(self, defect: str) -> tuple[str, ...]:
        """What ``--defect`` is given, the defect itself first."""
        return f"{defect}{':' * bool(self.probability)}{self.probability}", *self.beside


def opening(scenario: str, time_limit_s: float) -> Exercise:
    """The beginning of a named scenario, with its settings: the faults that are over by then."""
    fields = scenario_fields(scenario)
    hits = tuple(hit for hit in fields["schedule"].schedule.injections if hit.at_s + hit.duration_s <= time_limit_s)
    options = {name: value for name, value in fields.items() if name not in ("schedule", "time_limit_s", "client")}
    return Exercise(time_limit_s, hits, fields.get("client"), options)


def defect_cells(
    sweep: str,
    dimension: str,
    exercises: Mapping[str, Exercise],
    planted: Mapping[str, Planted],
    wanted: Wanted,
    seeds: tuple[int, ...],
    *,
    control_s: float = 0.0,
) -> Iterator[Cell]:
    """Of each exercise, the run without a defect and those with each of its defects, for each seed.

    ``control_s``: how long the load of a run without a defect lasts at least, unless a time limit is asked for.
    """
    for name, exercise in exercises.items():
        there = [defect for defect, each in planted.items() if each.exercise == name]
        for defect in (NONE, *there):
            texts = planted[defect].texts(defect) if defect != NONE else ()
            finds = planted[defect].finds if defect != NONE else ()
            for seed in wanted.seeds or seeds:
                lasting = exercise if texts else replace(exercise, time_limit_s=max(exercise.time_limit_s, control_s))
                asked = _asked(sweep, lasting, wanted, seed, texts)
                schedule = Schedule(seed, _hits(exercise, asked.time_limit_s)) if exercise.hits else None
                yield Cell({dimension: name, "defect": defect, "seed": str(seed)}, asked, schedule, finds=finds)


def _asked(sweep: str, exercise: Exercise, wanted: Wanted, seed: int, defects: tuple[str, ...]) -> Asked:
    told: dict[str, object] = {"readers": _READERS, "final_readers": _FINAL_READERS, **exercise.options}
    if wanted.rate is not None:
        told["rate"] = wanted.rate
    make: Callable[..., Asked] = Asked
    return make(
        **told,
        seed=seed,
        name=sweep,
        time_limit_s=wanted.time_limit_or(exercise.time_limit_s),
        client=exercise.client or wanted.client,
        faults=None if exercise.hits else "none",
        defects=defects,
    )


def _hits(exercise: Exercise, time_limit_s: float) -> tuple[Injection, ...]:
    """The faults that are over by then; if none is, the first one, moved or shortened to fit."""
    fitting = tuple(each for each in exercise.hits if each.at_s + each.duration_s <= time_limit_s)
    first = replace(exercise.hits[0], duration_s=min(exercise.hits[0].duration_s, time_limit_s))
    return fitting or (replace(first, at_s=time_limit_s - first.duration_s),)
