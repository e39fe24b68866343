"""Draws faults and settings from a swarm by a seed, and makes a schedule of them. Pure functions of their arguments.

Owns these draws, and how faults are grouped. Does not own what can be drawn (``chaos.schedules.swarms``) or which
faults may overlap (``chaos.schedules.outages``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaos.schedules.kinds import FaultKind
from chaos.schedules.model import Injection, Schedule
from chaos.schedules.outages import Limits, may_join
from chaos.schedules.swarms import Swarm
from cluster.seams.randomness import Random, derive

#: The share of a run's time that one fault of each drawn kind may take, so that there is time to repeat some.
_ONE_TURN = 0.7
#: When a fault that joins a group begins after the group's first fault, as a share of that one's duration.
_BEGINS = (0.05, 0.7)
#: The probability that a fault that joins a group hits the same partition as its first fault.
_SAME_PARTITION = 0.5


@dataclass(frozen=True, slots=True)
class Draw:
    """What one seed drew from a swarm.

    ``weights`` maps each drawn kind to its weight when faults are repeated. Durations are those of the kinds times
    ``stretch``. At most ``at_once`` faults form a group; each further one joins with the probability ``joins``. The
    pause between two groups is up to ``pause_s``; with the probability ``quiet``, it is between the bounds ``quiet_s``.
    """

    swarm: str
    weights: Mapping[str, int]
    stretch: float
    at_once: int
    joins: float
    pause_s: float
    quiet: float
    quiet_s: tuple[float, float]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The drawn kinds. Each is planned at least once."""
        return tuple(self.weights)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "weights": dict(self.weights), "quiet_s": list(self.quiet_s)}


def draw(swarm: Swarm, possible: Sequence[FaultKind], *, seed: int, warmup_s: float, time_limit_s: float) -> Draw:
    """Draw from the faults that are possible in the run (``possible``).

    Begins with the kinds that the swarm always has. Draws some of the others, as long as one fault of each fits into
    the time.
    """
    random = derive(seed, "swarm", swarm.name, "faults")
    stretch = round(random.uniform(1.0, 1.6), 2)
    share = random.uniform(0.3, 0.9)
    left_s = (time_limit_s - warmup_s) * _ONE_TURN
    by_name = {kind.name: kind for kind in possible if swarm.has(kind.name)}
    # one random generator per kind, so that a new kind in the catalogue does not change the draws of the others
    own = {name: derive(seed, "swarm", swarm.name, "fault", name) for name in by_name}
    always = [name for name in swarm.always if name in by_name]
    turns = {name: each.random() for name, each in own.items()}
    others = sorted(by_name.keys() - set(always), key=lambda name: (turns[name], name))
    drawn = [*always]
    left_s -= sum(_takes_s(by_name[name], stretch) for name in always)
    for name in others:
        takes_s = _takes_s(by_name[name], stretch)
        if not drawn or (own[name].random() < share and takes_s <= left_s):
            drawn.append(name)
            left_s -= takes_s
    return Draw(
        swarm=swarm.name,
        weights={name: own[name].choice((1, 1, 2, 4)) for name in drawn},
        stretch=stretch,
        at_once=random.randint(swarm.least_at_once, swarm.limits.at_once),
        joins=round(random.uniform(0.3, 0.9), 2),
        pause_s=random.choice((0.0, 0.5, 2.0)),
        quiet=random.choice((0.0, 0.1, 0.2)),
        quiet_s=(4.0, round(random.uniform(5.0, 12.0), 1)),
    )


def draw_settings(swarm: Swarm, *, seed: int, largest_bytes: int, loses: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Draw the settings of the producers and of the topic; returns both, as configuration keys with their values.

    ``largest_bytes`` is the size of the load's largest value; segments are at least four times as large, if possible.
    ``loses``: some fault of the run loses data or delivers batches twice. Then producers get acks=all: otherwise
    records that only a leader acknowledged could be lost, or batches without producer ids repeated, and no evidence of
    the run would show why.
    """
    random = derive(seed, "swarm", swarm.name, "settings")
    acks = random.choice(swarm.acks)
    producers = {"acks": "all" if loses else acks}
    producers |= {key: random.choice(values) for key, values in swarm.producers.items()}
    topic: dict[str, str] = {}
    for key, values in swarm.topic.items():
        size = random.choice(values)
        topic[key] = size if int(size) >= 4 * largest_bytes else max(values, key=int)
    return producers, topic


def lay_out(
    drawn: Draw,
    kinds: Sequence[FaultKind],
    limits: Limits,
    *,
    seed: int,
    warmup_s: float,
    time_limit_s: float,
    partitions: int,
    replicas: int,
) -> Schedule:
    """Make the schedule: one group of faults after the other, until no kind fits into the time anymore.

    Every drawn kind is planned once, even if it does not fit; repeats must fit. ``kinds`` must include the drawn kinds.
    ``partitions`` is the number of partitions from which targets are drawn, ``replicas`` the replication factor.
    """
    by_name = {kind.name: kind for kind in kinds}
    layout = _Layout(drawn, [by_name[name] for name in drawn.kinds], limits, replicas, seed, time_limit_s)
    at_s = warmup_s
    injections: list[Injection] = []
    while (group := layout.group(at_s)) is not None:
        injections += layout.placed(group, at_s, partitions)
        at_s = layout.next_s(injections)
    return Schedule(seed, tuple(sorted(injections, key=lambda each: each.at_s)))


class _Layout:
    """The state while a schedule is made: which kinds are not planned yet, and the random generator."""

    def __init__(
        self, drawn: Draw, kinds: list[FaultKind], limits: Limits, replicas: int, seed: int, time_limit_s: float
    ) -> None:
        self._drawn, self._kinds = drawn, kinds
        self._limits, self._replicas = limits, replicas
        self._time_limit_s = time_limit_s
        self._random: Random = derive(seed, "swarm", drawn.swarm, "schedule")
        self._to_come = list(kinds)
        self._random.shuffle(self._to_come)

    def group(self, at_s: float) -> list[FaultKind] | None:
        """Choose the kinds of the next group, in order; None if there is no time for another group."""
        first = self._to_come.pop(0) if self._to_come else self._repeat(self._kinds, at_s)
        if first is None:
            return None
        group = [first]
        while len(group) < self._drawn.at_once and self._random.random() < self._drawn.joins:
            fits = [each for each in self._kinds if may_join(group, each, self._limits, self._replicas)]
            # prefer a kind that is not planned yet: in this group, it takes no extra time
            joining = next((each for each in self._to_come if each in fits), None) or self._repeat(fits, at_s)
            if joining is None:
                break
            if joining in self._to_come:
                self._to_come.remove(joining)
            group.append(joining)
        return group

    def _repeat(self, kinds: Sequence[FaultKind], at_s: float) -> FaultKind | None:
        left_s = self._time_limit_s - at_s
        fit = [each for each in kinds if each.duration_s[1] * self._drawn.stretch + each.recovery_s <= left_s]
        if not fit:
            return None
        return self._random.choices(fit, [self._drawn.weights[each.name] for each in fit])[0]

    def placed(self, group: Sequence[FaultKind], at_s: float, partitions: int) -> list[Injection]:
        """The injections of a group: the first fault at ``at_s``, and the others, which begin while it lasts."""
        random, made = self._random, list[Injection]()
        for kind in group:
            least_s, most_s = (bound * self._drawn.stretch for bound in kind.duration_s)
            duration_s = round(random.uniform(least_s, most_s), 2)
            partition = random.randrange(partitions)
            if not made:
                made.append(Injection(round(at_s, 2), kind.name, duration_s, {"partition": partition}))
                continue
            first = made[0]
            if random.random() < _SAME_PARTITION:
                partition = first.target["partition"]
            begins_s = round(first.at_s + random.uniform(*_BEGINS) * first.duration_s, 2)
            made.append(Injection(begins_s, kind.name, duration_s, {"partition": partition}, overlap=True))
        return made

    def next_s(self, injections: Sequence[Injection]) -> float:
        """When the next group begins: after the cluster has recovered, and after a pause."""
        recovery_s = {kind.name: kind.recovery_s for kind in self._kinds}
        ends_s = max(each.at_s + each.duration_s + recovery_s[each.fault] for each in injections)
        is_quiet = self._random.random() < self._drawn.quiet
        return ends_s + self._random.uniform(*(self._drawn.quiet_s if is_quiet else (0.0, self._drawn.pause_s)))


def _takes_s(kind: FaultKind, stretch: float) -> float:
    return sum(kind.duration_s) / 2 * stretch + kind.recovery_s
