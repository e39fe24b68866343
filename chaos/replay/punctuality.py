"""How punctually a schedule was played, by its record. Pure; owns the figures and their sentence.

An event is the beginning or the end of an injection. An event that had to wait is not counted. A beginning waits if
there is nothing to break when it is due; it is then named. An end waits if the first probe is not done by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.replay.happened import by_number
from chaos.schedules.model import Injection, Schedule
from cluster.seams.units import ms_of_ns, ns_of_seconds
from verifier.evidence.how_many import how_many

MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Punctuality:
    """``deviations_ms``: how late each event was that did not have to wait (early: negative). ``waited`` has a line for
    each injection that waited; ``missing``, for each that broke nothing, failed or has no end.
    """

    deviations_ms: tuple[float, ...]
    waited: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def largest_ms(self) -> float | None:
        """The largest deviation; None if no event has a time of its own."""
        return max(map(abs, self.deviations_ms), default=None)

    @property
    def sentence(self) -> str:
        """For people, in a line."""
        largest = "" if self.largest_ms is None else f", largest deviation {self.largest_ms:.0f} ms"
        more = [f"{len(self.waited)} waited"] if self.waited else []
        more += [f"{len(self.missing)} missing"] if self.missing else []
        named = [*self.waited, *self.missing]
        left = "; ..." if len(named) > MOST_TOLD else ""
        told = f" ({'; '.join(named[:MOST_TOLD])}{left})" if named else ""
        events = how_many(len(self.deviations_ms), "event")
        return f"{', '.join([events + largest, *more])}{told}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "events": len(self.deviations_ms),
            "largest_deviation_ms": None if self.largest_ms is None else round(self.largest_ms, 1),
            "waited": list(self.waited),
            "missing": list(self.missing),
        }


def punctuality(schedule: Schedule, entries: Iterable[Mapping[str, Any]], load_started_ns: int) -> Punctuality:
    """Of a run that played this schedule, by its record."""
    record, deviations = by_number(entries), list[float]()
    waited, missing = list[str](), list[str]()
    for number, injection in enumerate(schedule.injections):
        phases = record.get(number, {})
        begun, over = phases.get("inject"), phases.get("heal")
        if begun is None:
            missing.append(f"{_name(injection)} {'found nothing to break' if 'skip' in phases else 'never came'}")
            continue
        start_ns, due_ns = int(begun["start_ns"]), load_started_ns + ns_of_seconds(injection.at_s)
        if begun.get("waited"):
            waited.append(f"{_name(injection)} found nothing to break for {ms_of_ns(start_ns - due_ns):,.0f} ms")
            due_ns = start_ns
        else:
            deviations.append(ms_of_ns(start_ns - due_ns))
        if over is None:
            missing.append(f"{_name(injection)} never ended")
        elif "error" in (begun.get("probe") or {}):
            missing.append(f"{_name(injection)} failed: {begun['probe']['error']}")
        ends_ns = due_ns + ns_of_seconds(injection.duration_s)
        # a fault ends when its first probe is done, at the earliest
        if over is not None and int(begun["end_ns"]) <= ends_ns:
            deviations.append(ms_of_ns(int(over["start_ns"]) - ends_ns))
    return Punctuality(tuple(deviations), tuple(waited), tuple(missing))


def _name(injection: Injection) -> str:
    return f"{injection.fault} at {injection.at_s:g} s"
