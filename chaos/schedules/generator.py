"""The seeded generator of schedules: decides when which fault is injected. A pure function of its arguments.

Faults follow each other, with time for the cluster to recover in between. With ``overlap``, some begin while the
previous one lasts. With three replicas and min.insync.replicas 2, two brokers down at once would only measure how long
a client can wait, so of two overlapping faults at most one takes a broker away (``chaos.schedules.outages``). Swarms
have other limits (``chaos.schedules.swarm``).

Every requested kind is planned at least once. Rounds of all kinds in random order follow each other until the time is
used up. Each round begins with ``kill-leader``, if requested: it is the fault that a replicated log is built for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from chaos.schedules.kinds import FaultKind
from chaos.schedules.model import Injection, Schedule
from chaos.schedules.outages import ORDINARY, may_join
from cluster.seams.randomness import derive

#: The share of faults that overlap the previous one, of those that may.
_OVERLAPPING = 0.75
#: The number of replicas for ``may_join``. It does not matter here, since no fault that loses data overlaps another.
_ENOUGH = 3
#: When an overlapping fault begins, as a share of the duration of the previous fault.
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
    """Plan faults of these kinds between ``warmup_s`` and ``time_limit_s``, in seconds since the start of the load.

    The first fault of each kind is planned even beyond the limit: the run then takes longer, instead of leaving out a
    kind. Repeats must fit. ``partitions`` is the number of partitions from which targets are drawn.
    """
    random = derive(seed, "schedule")
    if not kinds:
        return Schedule(seed, ())
    at_s = warmup_s
    injections: list[Injection] = []
    seen: set[str] = set()
    while True:
        #: The previous fault and its injection, if another one may overlap it.
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
    """One round: all kinds in random order, but ``kill-leader`` comes first, and again in the middle."""
    deck = list(kinds)
    random.shuffle(deck)
    kills = [kind for kind in deck if kind.name == "kill-leader"]
    others = [kind for kind in deck if kind.name != "kill-leader"]
    if not kills or len(others) < 2:
        return kills + others
    middle = len(others) // 2
    return kills + others[:middle] + kills + others[middle:]
