"""Makes the cells of sweeps that plant defects: each defect in a run that exercises it, and the same run without. Pure.

An exercise is a run (load, settings and faults) in which certain defects take effect ("fire"). All defects of an
exercise share one run without a defect. Does not own which defects and exercises exist (``defects``, ``sensitivity``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from chaos.experiment.asked import Asked
from chaos.experiment.told import scenario_fields
from chaos.schedules.model import Injection, Schedule
from chaos.sweeps.model import Cell, Wanted
from loadgen.settings import CONFLUENT, NATIVE

#: The label of a run without a defect.
NONE = "none"
#: As few processes as possible, since each costs a second: one reader, with the client that asks for end offsets, and a
#: final reader with another client.
_READERS, _FINAL_READERS = (NATIVE,), (CONFLUENT,)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A run in which certain defects fire.

    ``hits`` are its faults. ``client`` overrides the requested client, unless it is None. ``options`` has further
    fields of ``Asked``.
    """

    time_limit_s: float
    hits: tuple[Injection, ...] = ()
    client: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted defect: the exercise under which it fires, and the checks of which one must find it (``finds``).

    ``probability`` limits how often a defect fires that would otherwise destroy everything; "" means always. ``beside``
    has other defects, without which it cannot fire and which break no promise themselves. ``source`` names the real bug
    that it is modeled on.
    """

    exercise: str
    finds: tuple[str, ...]
    probability: str = ""
    beside: tuple[str, ...] = ()
    source: str = ""

    def texts(self, defect: str) -> tuple[str, ...]:
        """The values for ``--defect``; the one for ``defect`` itself is first."""
        return f"{defect}{':' * bool(self.probability)}{self.probability}", *self.beside


def opening(scenario: str, time_limit_s: float) -> Exercise:
    """An exercise from the first ``time_limit_s`` seconds of a scenario: its settings, and faults that end by then."""
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
    """For each exercise and seed: a cell without a defect, and one with each defect of the exercise.

    ``sweep`` is the sweep's name, and ``dimension`` the name of the dimension for exercises. ``control_s`` is the least
    duration of the load without a defect, in seconds; ``--time-limit`` overrides it.
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
    """The faults that end within ``time_limit_s``; if none does, the first one, moved or shortened to fit."""
    fitting = tuple(each for each in exercise.hits if each.at_s + each.duration_s <= time_limit_s)
    first = replace(exercise.hits[0], duration_s=min(exercise.hits[0].duration_s, time_limit_s))
    return fitting or (replace(first, at_s=time_limit_s - first.duration_s),)
