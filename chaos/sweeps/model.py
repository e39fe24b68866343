"""The model of a sweep: a matrix of cells, each of which is one run with settings, faults and a seed. Pure.

Owns the values, and the parsing of ``--filter`` and ``--seeds``. Runs nothing and judges nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.experiment.asked import Asked
from chaos.schedules.model import Schedule
from loadgen.settings import CONFLUENT

SEED = "seed"
#: Old names of dimensions, which --filter still accepts -> their current names.
FORMER: Mapping[str, str] = {"scenario": "exercise"}


class SweepError(ValueError):
    """The request for a sweep is not possible. The message names the problem and the fix."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect that a cell counts: its name, the check that finds it, and its cause in the expectation matrix."""

    name: str
    check: str
    cause: str | None


#: The counted effects, in the order of the report's columns.
EFFECTS = (
    Effect("lost", "lost-write", None),
    Effect("duplicated", "log-duplicate", "broker"),
    Effect("out of order", "log-reorder", "values"),
)

#: Also counted: records whose outcome the producer does not know. They are not an anomaly.
UNKNOWN = "unknown"
COUNTED = (*(effect.name for effect in EFFECTS), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of ``gapless sweep`` that shape its cells; None stands for the sweep's own default.

    ``filters`` select the cells that are run. ``minutes`` limits the whole sweep. ``day`` is the UTC date of the
    command as the number yyyymmdd, for a sweep that derives its seeds from the date.
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

    ``labels`` maps each dimension of the matrix to the cell's value, the seed last. ``claims`` are the effects that the
    cell is expected to show, empty if it must show none. ``finds`` are the checks of which at least one must find the
    planted defect. ``inapplicable`` says why running the cell makes no sense, "" if it does. Cells run in the order of
    ``turn``; those with the same turn, in the order of the matrix.
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
        """Its labels without the seed. Cells with the same setting are summed."""
        return tuple(value for dimension, value in self.labels.items() if dimension != SEED)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A matrix of cells.

    ``across`` is the dimension that a plot shows from left to right. ``compared`` has the values of this dimension at
    which the throughput of cells may be compared; empty means all. ``judged_at_once`` is how many runs share a Spark
    session; with 0, each run is judged at its end.
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
        """The seeds of the cells, each once."""
        return tuple(dict.fromkeys(cell.asked.seed for cell in self.cells))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions, the seed last."""
        return tuple(self.cells[0].labels) if self.cells else ()

    def filtered(self, terms: Sequence[tuple[str, frozenset[str]]]) -> tuple[Cell, ...]:
        """The cells that match every term, in the order in which they run.

        A term has a dimension and its allowed values. Raises SweepError for an unknown dimension or value.
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
        """The current name of a dimension that was given by its current or its old name."""
        return FORMER[name] if name not in self.dimensions and FORMER.get(name) in self.dimensions else name


def parse_filter(texts: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    """Parse filters such as ``acks=1,fault=reset|none`` into (dimension, values) terms. Raises SweepError."""
    terms = []
    for term in (each.strip() for text in texts for each in text.split(",")):
        dimension, separator, values = term.partition("=")
        if not separator or not dimension or not values:
            raise SweepError(f"--filter takes DIMENSION=VALUE[|VALUE], not {term!r}")
        terms.append((dimension, frozenset(values.split("|"))))
    return terms


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse ``N`` (the seeds 1 to N), or ``a,b,c`` (these seeds; ``a,`` is the single seed a). Raises SweepError."""
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
