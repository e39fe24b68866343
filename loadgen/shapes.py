"""Load shapes: how the rate of a load changes over time. Pure.

A shape is a factor on the load's rate, constant by pieces. Written as ``constant``, as ``{steps: [[SECONDS, FACTOR],
...]}`` (the last one is held to the end) or as ``{bursts: {every_s: 10, for_s: 2, factor: 8}}`` (a burst ends each
period; before it the factor is 1). Owns the forms and their arithmetic, not when anything is sent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Any

from loadgen.spec import SpecError, numbers_of, one_of

#: ``constant``, or a mapping with the one key ``steps`` or ``bursts``; as it is in YAML and JSON.
ShapeSpec = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RateShape:
    """``pieces`` are seconds and factor, in their order; they begin again at their end, or the last one lasts.

    *Work* is the integral of the factor over the seconds: at 100 records/s, 3.0 of work are 300 records.
    """

    pieces: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    repeats: bool = True
    _ends_s: list[float] = field(init=False, repr=False, compare=False)
    _works: list[float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends_s", list(accumulate(seconds for seconds, _ in self.pieces)))
        object.__setattr__(self, "_works", list(accumulate(seconds * factor for seconds, factor in self.pieces)))

    @property
    def is_constant(self) -> bool:
        """Whether the rate never changes."""
        return all(factor == 1.0 for _, factor in self.pieces)

    def work(self, seconds: float) -> float:
        """The work that is due after this many seconds, 0 or more."""
        rounds = 0.0
        if self.repeats:
            rounds, seconds = divmod(seconds, self._ends_s[-1])
        index = min(bisect_right(self._ends_s, seconds), len(self.pieces) - 1)
        before_s, before = (self._ends_s[index - 1], self._works[index - 1]) if index else (0.0, 0.0)
        return rounds * self._works[-1] + before + (seconds - before_s) * self.pieces[index][1]

    def seconds_of(self, work: float) -> float:
        """When this much work is due: the earliest time; the inverse of ``work``."""
        rounds = 0.0
        if self.repeats:
            rounds, work = divmod(work, self._works[-1])
        index = min(bisect_left(self._works, work), len(self.pieces) - 1)
        before_s, before = (self._ends_s[index - 1], self._works[index - 1]) if index else (0.0, 0.0)
        seconds = before_s + (work - before) / self.pieces[index][1] if work > before else before_s
        return rounds * self._ends_s[-1] + seconds

    def mean(self, seconds: float) -> float:
        """The mean factor over this many first seconds, more than 0."""
        return self.work(seconds) / seconds


def parse_shape(spec: ShapeSpec) -> RateShape:
    """Parse a shape as it is written in YAML. Raises SpecError."""
    name, value = one_of("shape", spec, ("constant", "steps", "bursts"))
    if name == "constant":
        return RateShape()
    if name == "steps":
        return RateShape(_steps(value), repeats=False)
    every_s, for_s, factor = numbers_of("bursts", value, ("every_s", "for_s", "factor"))
    if not 0 < for_s < every_s or factor < 0:
        raise SpecError(f"bursts need 0 < for_s < every_s and a factor of 0 or more, not {value}")
    return RateShape(((every_s - for_s, 1.0), (for_s, factor)))


def _steps(value: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list | tuple) or not value:
        raise SpecError(f"steps is a list of [SECONDS, FACTOR], not {value!r}")
    pieces = []
    for entry in value:
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise SpecError(f"steps is a list of [SECONDS, FACTOR], not {entry!r}")
        seconds, factor = entry
        if isinstance(seconds, bool) or isinstance(factor, bool) or not isinstance(seconds, int | float):
            raise SpecError(f"steps is a list of [SECONDS, FACTOR], not {entry!r}")
        if not isinstance(factor, int | float) or not 0 < seconds < inf or not 0 <= factor < inf:
            raise SpecError(f"a step needs more than 0 seconds and a factor of 0 or more, not {entry!r}")
        pieces.append((float(seconds), float(factor)))
    if not pieces[-1][1] > 0:
        raise SpecError("the last step lasts to the end: its factor must be above 0")
    return tuple(pieces)
