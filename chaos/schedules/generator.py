"""The seeded generator of schedules. Owns when what is broken; a pure function of its arguments.

Faults come one after the other, each with room to heal before the next, unless ``overlap`` asks for composed ones:
then some begin while the one before lasts. With three replicas and min.insync.replicas 2, two brokers
down at once would only measure how long a client can wait, so of two that overlap at most one takes a broker away
(``chaos.schedules.outages``). Profiles lift that rule (``chaos.schedules.swarm``).
Every kind asked for comes at least once, and the deck is dealt again until the time is used up, ``kill-leader``
(where it is asked for) opening each deal: it is the fault that a replicated log is built for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from chaos.schedules.kinds import FaultKind
from chaos.schedules.model import Injection, Schedule
from chaos.schedules.outages import ORDINARY, may_join
from cluster.seams.randomness import derive

#: The share of the faults that could overlap with the one before and do.
_OVERLAPPING = 0.75
#: Nothing that loses data comes beside another fault here, so that the number of replicas does not matter.
_ENOUGH = 3
#: An overlapping fault begins this long after the one that it overlaps, as a share of that one's duration.
_BEGINS = (0.1, 0.7)


def generate(
    kinds: Sequence[FaultKind],
    *,
    seed: int,
    warmup_s: float,
    time_limit_s: float,
    partitions: int,
    overlap: bool = False,
) -> Schedule:
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
        #: The fault before and its injection, if one may still begin beside it.
        open_to: tuple[FaultKind, Injection] | None = None
        for kind in _deal(kinds, random):
            if kind.once and kind.name in seen:
                continue
            duration_s = round(random.uniform(*kind.duration_s), 2)
            target: Mapping[str, int] = {"partition": random.randrange(partitions)}
            begins_s = at_s
            beside = (
                open_to is not None
                and may_join([open_to[0]], kind, ORDINARY, _ENOUGH)
                and random.random() < _OVERLAPPING
            )
            if beside and open_to is not None:
                begins_s = open_to[1].at_s + random.uniform(*_BEGINS) * open_to[1].duration_s
            ends_s = begins_s + duration_s + kind.recovery_s
            if ends_s > time_limit_s and kind.name in seen:
                continue
            seen.add(kind.name)
            injections.append(Injection(round(begins_s, 2), kind.name, duration_s, target, overlap=beside))
            open_to = (kind, injections[-1]) if overlap and not beside else None
            at_s = max(at_s, ends_s + random.uniform(0.0, 0.5))
        again = [kind.duration_s[1] + kind.recovery_s for kind in kinds if not (kind.once and kind.name in seen)]
        if not again or at_s + min(again) > time_limit_s:
            return Schedule(seed, tuple(injections))


def _deal(kinds: Sequence[FaultKind], random: Random) -> list[FaultKind]:
    """One round of all kinds in random order, leader kills first and again in the middle."""
    deck = list(kinds)
    random.shuffle(deck)
    kills = [kind for kind in deck if kind.name == "kill-leader"]
    others = [kind for kind in deck if kind.name != "kill-leader"]
    if not kills or len(others) < 2:
        return kills + others
    middle = len(others) // 2
    return kills + others[:middle] + kills + others[middle:]
