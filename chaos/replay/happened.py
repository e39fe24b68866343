"""What really happened in a run, as a schedule. Pure; owns which record of a fault becomes which injection.

An injection is repeated at the time at which it struck, whether or not those before it are over. One that waited for
something to break is due when it began to wait, and waits again. One that was skipped or left out broke nothing, and is
not repeated. Whatever a fault drew from its seed, and its record has, becomes a parameter by name, so that it is the
same again in whatever state the cluster is then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection, Schedule
from cluster.seams.units import seconds_of_ns

#: Times are kept to the millisecond.
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Happened:
    """The schedule to play again; ``without`` counts the planned injections that are not in it, by the reason."""

    schedule: Schedule
    without: Mapping[str, int]


def by_number(entries: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, Mapping[str, Any]]]:
    """The lines of a ``faults.jsonl`` by the number of the injection and the phase."""
    found: dict[int, dict[str, Mapping[str, Any]]] = {}
    for entry in entries:
        found.setdefault(int(entry.get("number", -1)), {}).setdefault(str(entry.get("phase")), entry)
    return found


def happened(planned: Schedule, entries: Iterable[Mapping[str, Any]], load_started_ns: int) -> Happened:
    """What became of ``planned``, by the record of a run whose load began at ``load_started_ns``.

    Raises ``ValueError``, ``TypeError`` or ``KeyError`` for a record that is not of this schedule.
    """
    injections: list[Injection] = []
    without: dict[str, int] = {}
    record = by_number(entries)
    if strange := [number for number in record if not 0 <= number < len(planned.injections)]:
        raise ValueError(f"faults.jsonl has an injection {strange[0]}, and schedule.yaml {len(planned.injections)}")
    for number, injection in enumerate(planned.injections):
        phases = record.get(number, {})
        if "inject" not in phases:
            why = "found nothing to break" if "skip" in phases else "never came"
            without[why] = without.get(why, 0) + 1
            continue
        injections.append(_again(injection, number, phases["inject"], load_started_ns))
    return Happened(Schedule(planned.seed, tuple(sorted(injections, key=lambda each: each.at_s))), without)


def _again(injection: Injection, number: int, begun: Mapping[str, Any], load_started_ns: int) -> Injection:
    if begun["fault"] != injection.fault:
        raise ValueError(f"injection {number} is {injection.fault} in schedule.yaml, {begun['fault']} in faults.jsonl")
    drawn_as = number if injection.replays is None else injection.replays
    fixed = replace(injection, replays=drawn_as, parameters={**_drawn(injection, begun), **injection.parameters})
    due_ns = int(begun["asked_ns"] if begun.get("waited") else begun["start_ns"])
    at_s = round(seconds_of_ns(due_ns - load_started_ns), DIGITS)
    # a replayed injection looks for its target before it is due
    return replace(fixed, at_s=max(at_s, injection.at_s) if begun.get("waited") else max(at_s, 0.0), overlap=True)


def _drawn(injection: Injection, begun: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the fault that its probe recorded, by the same names."""
    seen = begun.get("probe") or {}
    return {
        rule.name: seen[rule.name]
        for rule in FAULTS[injection.fault].accepts
        if rule.name in seen and rule.allows(seen[rule.name])
    }
