"""What a sweep is: cells, each one run with its settings, its faults and its seed. Pure; runs and judges nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.experiment.asked import Asked
from chaos.schedules.model import Schedule
from loadgen.settings import CONFLUENT

SEED = "seed"
#: Former names of dimensions, which --filter still accepts.
FORMER: Mapping[str, str] = {"scenario": "exercise"}


class SweepError(ValueError):
    """A sweep cannot do what was asked; the message names the problem and the fix."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect that a cell counts: the check that finds it, and its cause in the expectation matrix."""

    name: str
    check: str
    cause: str | None


#: In the order of the columns.
EFFECTS = (
    Effect("lost", "lost-write", None),
    Effect("duplicated", "log-duplicate", "broker"),
    Effect("out of order", "log-reorder", "values"),
)

#: Counted besides these: records whose outcome the producer does not know. That is no anomaly.
UNKNOWN = "unknown"
COUNTED = (*(effect.name for effect in EFFECTS), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of ``gapless sweep`` that shape its cells; None stands for the sweep's own default.

    ``filters`` select the cells that are run. ``minutes`` limits the whole sweep. ``day`` is the date in UTC on which
    it was asked for, as the number yyyymmdd, for a sweep that derives its seeds from the date.
    """

    seeds: tuple[int, ...] | None = None
    time_limit_s: float | None = None
    client: str = CONFLUENT
    rate: int | None = None
    faults: str | None = None
    filters: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    minutes: int | None = None
    day: int = 0
    profile: str | None = None
    swarm: str | None = None

    def time_limit_or(self, default_s: float) -> float:
        return default_s if self.time_limit_s is None else self.time_limit_s

    def to_json(self) -> dict[str, object]:
        return {
            "seeds": None if self.seeds is None else list(self.seeds),
            "time_limit_s": self.time_limit_s,
            "client": self.client,
            "rate": self.rate,
            "faults": self.faults,
            "filters": list(self.filters),
            "defects": list(self.defects),
            "minutes": self.minutes,
            "day": self.day,
            "profile": self.profile,
            "swarm": self.swarm,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Wanted:
        """The inverse of ``to_json``. Raises SweepError."""
        try:
            seeds = value["seeds"]
            texts = {name: tuple(map(str, value.get(name, ()))) for name in ("filters", "defects")}
            return cls(**{**value, "seeds": None if seeds is None else tuple(map(int, seeds)), **texts})
        except (KeyError, TypeError, ValueError) as error:
            raise SweepError(f"the options of the sweep cannot be read: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a sweep.

    ``labels`` are its place in the matrix, the seed last. ``claims`` are the effects that it is expected to show; an
    empty tuple means none. ``finds`` are the checks of which one must find its planted defect. ``inapplicable`` says
    why it makes no sense to run the cell. Cells are run by rising ``turn``, and else in the order of the matrix.
    """

    labels: Mapping[str, str]
    asked: Asked
    schedule: Schedule | None = None
    claims: tuple[str, ...] = ()
    inapplicable: str = ""
    turn: tuple[int, ...] = ()
    finds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its directory, without commas: a broker's ``log.dirs`` is split at commas."""
        return "_".join(f"{dimension}-{value}" for dimension, value in self.labels.items())

    @property
    def setting(self) -> tuple[str, ...]:
        """Its place in the matrix without the seed: cells that differ only in the seed are summed."""
        return tuple(value for dimension, value in self.labels.items() if dimension != SEED)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A matrix of cells.

    ``across`` is the dimension that a plot shows from left to right. ``compared`` are its values at which throughput
    may be compared; an empty tuple means all. ``judged_at_once`` is how many runs share a Spark session; with 0, each
    run is judged at its end.
    """

    name: str
    summary: str
    across: str
    cells: tuple[Cell, ...]
    compared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    judged_at_once: int = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of its cells, each once."""
        return tuple(dict.fromkeys(cell.asked.seed for cell in self.cells))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of the matrix, the seed last."""
        return tuple(self.cells[0].labels) if self.cells else ()

    def filtered(self, terms: Sequence[tuple[str, frozenset[str]]]) -> tuple[Cell, ...]:
        """The cells that every term lets pass, in the order in which they are run.

        Raises SweepError for an unknown dimension or value.
        """
        terms = [(self._dimension(name), values) for name, values in terms]
        for dimension, values in terms:
            if dimension not in self.dimensions:
                raise SweepError(_unknown("dimension", dimension, self.dimensions))
            known = dict.fromkeys(cell.labels[dimension] for cell in self.cells)
            for value in sorted(values - known.keys()):
                if dimension == SEED and value.isascii() and value.isdigit():
                    among = ", ".join(known)
                    raise SweepError(
                        f"seed {value} of --filter is not one of the sweep's seeds ({among}); use --seeds {value},"
                    )
                raise SweepError(_unknown(f"{dimension} in --filter:", value, tuple(known)))
        passed = [cell for cell in self.cells if all(cell.labels[dimension] in values for dimension, values in terms)]
        return tuple(sorted(passed, key=lambda cell: cell.turn))

    def _dimension(self, name: str) -> str:
        """The dimension of this name; of one that it had before, the one of today."""
        return FORMER[name] if name not in self.dimensions and FORMER.get(name) in self.dimensions else name


def parse_filter(texts: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    """``acks=1,fault=reset|none`` as terms. Raises SweepError."""
    terms = []
    for term in (each.strip() for text in texts for each in text.split(",")):
        dimension, separator, values = term.partition("=")
        if not separator or not dimension or not values:
            raise SweepError(f"--filter takes DIMENSION=VALUE[|VALUE], not {term!r}")
        terms.append((dimension, frozenset(values.split("|"))))
    return terms


def parse_seeds(text: str) -> tuple[int, ...]:
    """``N`` (the seeds 1 to N), or ``a,b,c`` (these; ``a,`` for one). Raises SweepError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts if part) or not parts[0]:
        raise SweepError(f"--seeds takes a number of seeds, or comma-separated seeds, not {text!r}")
    if len(parts) == 1:
        if not 1 <= int(text) <= 1000:
            raise SweepError(
                f"--seeds {text} is not a number of seeds from 1 to 1000; --seeds {text}, is a single seed"
            )
        return tuple(range(1, int(text) + 1))
    return tuple(dict.fromkeys(int(part) for part in parts if part))


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"unknown {what} {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}")
