"""What a seed draws of a swarm, and the schedule that it makes of that. Pure functions of their arguments.

Owns the draws of faults, of how they come together, and of settings. What may be drawn is ``chaos.schedules.swarms``'
and what may be away at once ``chaos.schedules.outages``'.
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

#: The share of a run's time that one turn of all drawn kinds may take, so that each comes and some come again.
_ONE_TURN = 0.7
#: A fault that joins a group begins this long after its first one, as a share of that one's duration.
_BEGINS = (0.05, 0.7)
#: How often one that joins hits the same partition as the first one.
_SAME_PARTITION = 0.5


@dataclass(frozen=True, slots=True)
class Draw:
    """What one seed makes of a swarm.

    ``weights``: how often each kind comes, beside the others. Each duration is that of its kind times ``stretch``.
    ``at_once`` faults may last together, and one joins others in this share (``joins``) of the cases in which it could.
    Between groups the pause is up to ``pause_s``, or with the probability ``quiet`` as long as ``quiet_s`` says.
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
        """The kinds that were drawn, each of which comes at least once."""
        return tuple(self.weights)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "weights": dict(self.weights), "quiet_s": list(self.quiet_s)}


def draw(swarm: Swarm, possible: Sequence[FaultKind], *, seed: int, warmup_s: float, time_limit_s: float) -> Draw:
    """What this seed draws of the faults that are possible in the run.

    Those that the swarm always has come first. Of the others some are drawn, as many as have the time for one turn.
    """
    random = derive(seed, "swarm", swarm.name, "faults")
    stretch = round(random.uniform(1.0, 1.6), 2)
    share = random.uniform(0.3, 0.9)
    left_s = (time_limit_s - warmup_s) * _ONE_TURN
    by_name = {kind.name: kind for kind in possible if swarm.has(kind.name)}
    # from a generator of each kind's own: one more in the catalogue does not change what a seed makes of the others
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
    """What this seed draws of the producers' and of the topic's keys.

    ``largest_bytes``: the largest value of the load, of which a segment has room for several. ``loses``: a fault of
    the run loses data, or delivers batches twice; acknowledgements of a leader alone could then be lost, and batches of
    producers without IDs repeated, in ways that no record of the run shows.
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
    """The schedule: groups of faults, one group after the other, until no kind fits into the time anymore.

    Every kind comes once even if the time is too short for that; repeats must fit.
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
    """The state of one layout: which kinds have not come yet, and the random generator."""

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
        """The kinds of the next group, in their order; None if there is no time for another one."""
        first = self._to_come.pop(0) if self._to_come else self._repeat(self._kinds, at_s)
        if first is None:
            return None
        group = [first]
        while len(group) < self._drawn.at_once and self._random.random() < self._drawn.joins:
            fits = [each for each in self._kinds if may_join(group, each, self._limits, self._replicas)]
            # one that has not come yet takes no more time beside another one
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
        """The injections of a group: the first one, and those that begin while it lasts."""
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
        """When the next group may begin: the cluster has recovered, and a pause is over."""
        recovery_s = {kind.name: kind.recovery_s for kind in self._kinds}
        ends_s = max(each.at_s + each.duration_s + recovery_s[each.fault] for each in injections)
        is_quiet = self._random.random() < self._drawn.quiet
        return ends_s + self._random.uniform(*(self._drawn.quiet_s if is_quiet else (0.0, self._drawn.pause_s)))


def _takes_s(kind: FaultKind, stretch: float) -> float:
    return sum(kind.duration_s) / 2 * stretch + kind.recovery_s
