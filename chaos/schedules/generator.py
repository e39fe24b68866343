"""The seeded generator of schedules. Owns when what is broken; a pure function of its arguments.

Faults come one after the other, each with room to heal before the next: with three replicas and
min.insync.replicas 2, two brokers down at once would only measure how long a client can wait. Every kind asked for
comes at least once, and the deck is dealt again until the time is used up, ``kill-leader`` (where it is asked for)
opening each deal: it is the fault that a replicated log is built for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from chaos.schedules.model import Injection, Schedule
from cluster.seams.randomness import derive


@dataclass(frozen=True, slots=True)
class Kind:
    """What the generator must know of a fault: how long it lasts and how long the cluster needs afterwards."""

    name: str
    duration_s: tuple[float, float]
    recovery_s: float


def generate(kinds: Sequence[Kind], *, seed: int, warmup_s: float, time_limit_s: float, partitions: int) -> Schedule:
    """Deal ``kinds`` over the time between warm-up and the limit.

    A kind that no longer fits is still planned if it has not come yet (the run is then longer than the limit by as
    much as it needs, rather than ineffective); repeats must fit.
    """
    random = derive(seed, "schedule")
    if not kinds:
        return Schedule(seed, ())
    at_s = warmup_s
    injections: list[Injection] = []
    seen: set[str] = set()
    while True:
        for kind in _deal(kinds, random):
            duration_s = round(random.uniform(*kind.duration_s), 2)
            fits = at_s + duration_s + kind.recovery_s <= time_limit_s
            if not fits and kind.name in seen:
                continue
            seen.add(kind.name)
            target: Mapping[str, int] = {"partition": random.randrange(partitions)}
            injections.append(Injection(round(at_s, 2), kind.name, duration_s, target))
            at_s += duration_s + kind.recovery_s + random.uniform(0.0, 0.5)
        if at_s + min(kind.duration_s[1] + kind.recovery_s for kind in kinds) > time_limit_s:
            return Schedule(seed, tuple(injections))


def _deal(kinds: Sequence[Kind], random: Random) -> list[Kind]:
    """One round of all kinds in random order, leader kills first and once more in the middle."""
    deck = list(kinds)
    random.shuffle(deck)
    kills = [kind for kind in deck if kind.name == "kill-leader"]
    others = [kind for kind in deck if kind.name != "kill-leader"]
    if not kills or len(others) < 2:
        return kills + others
    middle = len(others) // 2
    return kills + others[:middle] + kills + others[middle:]
