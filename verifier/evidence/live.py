"""What a run is doing now (``live.json``). Owns its shape; written by the conductor, shown by the load's web interface.

It is no evidence: nothing is judged by it, and a run without anyone to look has none. Times are of the run's one
monotonic clock, in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from verifier.evidence.run_directory import read_json, write_json_atomic

#: Some twenty minutes of faults; the file stays small, and is written in two milliseconds.
MOST_PAST = 100


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault that was injected and is not over; ``healed``: mended, and its recovery is being watched."""

    fault: str
    target: str
    since_ns: int
    healed: bool = False


@dataclass(frozen=True, slots=True)
class PastFault:
    """A fault that is over. ``effect``: ``bit``, ``did not bite``, ``skipped``, ``not healed`` or ``cut short``."""

    fault: str
    target: str
    start_ns: int
    end_ns: int
    effect: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LiveState:
    """One moment of a run.

    ``load`` adds all load processes up: ``acked``, ``unknown``, ``failed``, ``read``, ...; ``past`` has the newest
    ``MOST_PAST`` faults, the oldest first; ``done`` and ``effective`` count all of them.
    """

    name: str
    seed: int
    started_ns: int
    time_ns: int
    time_limit_s: float
    phase: str
    phase_since_ns: int
    load_since_ns: int | None
    report: str
    planned: int = 0
    done: int = 0
    effective: int = 0
    active: tuple[ActiveFault, ...] = ()
    past: tuple[PastFault, ...] = ()
    load: Mapping[str, float] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Replace the file. Raises ``OSError``."""
        write_json_atomic(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> LiveState:
        """Raises ``FileNotFoundError``, or ``ValueError`` if the file is not what this writes."""
        value = read_json(path)
        try:
            active = tuple(ActiveFault(**each) for each in value["active"])
            past = tuple(PastFault(**each) for each in value["past"])
            return cls(**{**value, "active": active, "past": past})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: not the state of a run: {error}") from error
