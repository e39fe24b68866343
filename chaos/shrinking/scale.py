"""From a candidate to the run that tries it: which injections at which times, how long, with which load. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.experiment import WARMUP_S, Experiment
from chaos.experiment.forms import ScheduleFile
from chaos.faults.catalogue import FAULTS
from chaos.replay.happened import DIGITS
from chaos.schedules.model import Injection, Schedule
from chaos.shrinking.smaller_run import PlayingPace, SmallerRun
from verifier.evidence.how_many import how_many

#: The load after the last fault.
TAIL_S = 10.0
SHORT_TAIL_S = 3.0
#: The lowest rate to try, in records/s: fewer records say little.
LEAST_RATE = 20
#: Rates and numbers of producers are divided by these, the largest divisor first.
_SHARES = (16, 4, 2)


def scaled(asked: Asked, schedule: Schedule, candidate: SmallerRun, path: Path) -> Asked:
    """What the candidate asks of ``gapless run``; its schedule is to be written to ``path``."""
    chosen = [schedule.injections[number] for number in candidate.events]
    if candidate.pace >= PlayingPace.SHIFTED:
        chosen = _moved(chosen, 0, WARMUP_S)
    if candidate.pace >= PlayingPace.CLOSED:
        for number in range(1, len(chosen)):
            chosen = _moved(chosen, number, max(map(_recovered_s, chosen[:number])))
    limit_s = asked.time_limit_s
    if candidate.pace >= PlayingPace.CUT:
        tail_s = SHORT_TAIL_S if candidate.pace is PlayingPace.SHORT else TAIL_S
        ends_s = max((each.at_s + each.duration_s for each in chosen), default=WARMUP_S)
        limit_s = min(limit_s, float(math.ceil(ends_s + tail_s)))
    file = ScheduleFile(path, replace(schedule, injections=tuple(chosen)))
    return replace(asked, schedule=file, time_limit_s=limit_s, **dict(candidate.load))


def _recovered_s(injection: Injection) -> float:
    return injection.at_s + injection.duration_s + FAULTS[injection.fault].recovery_s


def _moved(injections: Sequence[Injection], first: int, to_s: float) -> list[Injection]:
    """Moves ``first`` and all after it earlier, so that ``first`` is at ``to_s``; never later."""
    before = list(injections[:first])
    behind = injections[first:]
    earlier_s = max(0.0, behind[0].at_s - to_s) if behind else 0.0
    return before + [replace(each, at_s=round(each.at_s - earlier_s, DIGITS)) for each in behind]


def load_steps(experiment: Experiment) -> Mapping[str, tuple[Any, ...]]:
    """Settings of the load that may be reduced: the values to try, the smallest first."""
    asked, workload = experiment.asked, experiment.workload
    steps: dict[str, tuple[Any, ...]] = {}
    if len(asked.readers) > 1:
        steps["readers"] = tuple((reader,) for reader in asked.readers)
    if asked.load_processes > 1:
        steps["load_processes"] = (1,)
    if not workload.is_transactional and workload.members is None:
        steps["users"] = _less(experiment.users, 1)
    if isinstance(workload.rate, (int, float)) and not isinstance(workload.rate, bool):
        steps["rate"] = _less(int(workload.rate), LEAST_RATE)
    return {name: values for name, values in steps.items() if values}


def _less(value: int, least: int) -> tuple[int, ...]:
    return tuple(sorted({max(least, value // share) for share in _SHARES if max(least, value // share) < value}))


def words_of(asked: Asked) -> str:
    """A run in a few words, for people: its faults, its length, its load."""
    injections = () if asked.schedule is None else asked.schedule.schedule.injections
    named = ", ".join(f"{each.fault} at {each.at_s:g} s" for each in injections[:4])
    more = ", ..." if len(injections) > 4 else ""
    faults = how_many(len(injections), "fault") + (f" ({named}{more})" if named else "")
    load = [f"{asked.rate} records/s" if asked.rate else "", how_many(asked.users, "producer") if asked.users else ""]
    return ", ".join([faults, f"{asked.time_limit_s:g} s of load", *filter(None, load)])
