"""The decisions of shrinking: what to try next, given the outcomes of earlier tries. Pure; runs nothing.

Owns their order: how often the whole run fails; the faults, by bisection and then delta debugging (Zeller's ddmin); the
duration; the load; how often the result fails. A candidate is accepted once it has failed. One that does not fail is
tried again, and more often the less reliably the whole run fails. A failing candidate may still pass every time by bad
luck; the result is then larger than necessary.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chaos.shrinking.smaller_run import PlayingPace, SearchEnd, SmallerRun, TryCount, TryOutcome

#: The accepted probability that a candidate passes all its tries although it fails as often as the whole run.
MISS = 0.15
#: The most tries of a candidate that does not fail.
MOST_TRIES = 4

SearchSteps = Generator[SmallerRun, TryOutcome, bool]
SearchStage = Generator[SmallerRun, TryOutcome, None]


class Search:
    """Asks for one try after the other: ``candidate`` is the next one, None at the end; ``told`` says its outcome.

    ``best`` is the smallest that failed so far, None while nothing has. ``before`` and ``after`` count fresh tries of
    the whole run and of the result. ``likely``: this many of the first injections are likely to suffice. ``load`` has
    the values to try for settings of the load, the smallest first.
    """

    def __init__(
        self,
        events: int,
        *,
        max_runs: int,
        tries: int = 3,
        likely: int | None = None,
        load: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self._whole = SmallerRun(tuple(range(events)))
        self._max_runs, self._tries, self._likely = max_runs, tries, likely
        self._load = dict(load or {})
        self._tallies: dict[SmallerRun, TryCount] = {}
        self._accepted: list[SmallerRun] = []
        self._is_lost = False
        self._patience = 1
        self.before, self.after = TryCount(), TryCount()
        self.runs = 0
        self.stage = "before"
        self._steps = self._search()
        self.candidate: SmallerRun | None = next(self._steps)

    @property
    def max_runs(self) -> int:
        """The most runs that there will be; fewer after ``enough``."""
        return self._max_runs

    @property
    def best(self) -> SmallerRun | None:
        """The smallest that failed."""
        if self._accepted:
            return self._accepted[-1]
        return self._whole if self.before.failures else None

    @property
    def end(self) -> SearchEnd:
        """What is known about smaller runs so far."""
        if len(self._accepted) > 1:
            return SearchEnd.SMALLER
        if self._is_lost:
            return SearchEnd.NOT_AGAIN
        is_tried = any(tally.tries for tally in self._tallies.values())
        return SearchEnd.NONE_FAILED if is_tried else SearchEnd.NONE_TRIED

    def told(self, outcome: TryOutcome) -> SmallerRun | None:
        """Hear what came of ``candidate``; the next one."""
        self.runs += outcome is not TryOutcome.IMPOSSIBLE
        try:
            self.candidate = self._steps.send(outcome)
        except StopIteration:
            self.candidate = None
        return self.candidate

    def enough(self) -> int:
        """Stop looking: drop the current candidate, and from now on only measure how often the result fails.

        Returns how many tries that takes at most: none if nothing smaller has failed.
        """
        if self.stage != "after":
            self._max_runs = min(self._max_runs, self.runs + self._tries)
            self._steps.close()
            self._steps = self._confirm()
            self.candidate = next(self._steps, None)
        return 0 if self.candidate is None else self._max_runs - self.runs

    @property
    def _left(self) -> int:
        """Runs that are left for the search itself."""
        return self._max_runs - self._tries - self.runs

    def _search(self) -> SearchStage:
        yield from self._measure(self._whole, self.before, 2 * self._tries)
        if not self.before.failures:
            return
        self._accepted.append(self._whole)
        self._patience = patience(self.before)
        for stage, work in (
            ("faults", self._events()), ("duration", self._durations()), ("load", self._loads()),
        ):  # fmt: skip
            self.stage = stage
            yield from work
        yield from self._confirm()

    def _measure(self, candidate: SmallerRun, tally: TryCount, most: int) -> SearchStage:
        """Fresh tries; up to ``most`` as long as none has failed."""
        while tally.tries < (self._tries if tally.failures else most) and self.runs < self._max_runs:
            tally.add((yield candidate))

    def _confirm(self) -> SearchStage:
        """How often the result fails. If it does not fail again, the candidate accepted before it is the result."""
        self.stage = "after"
        while len(self._accepted) > 1:
            self.after = TryCount()
            yield from self._measure(self._accepted[-1], self.after, self._tries)
            # no runs are left, so it stays unknown how often this one fails
            if self.after.failures or not self.after.tries:
                return
            self._accepted.pop()
            self._is_lost = True
        if self.before.failures:
            self.after = self.before

    def _fails(self, candidate: SmallerRun) -> SearchSteps:
        """Whether it fails; if so, it is the best. It is tried until it fails, at most as often as patience allows."""
        tally = self._tallies.setdefault(candidate, TryCount())
        while tally.is_possible and not tally.failures and tally.tries < self._patience and self._left > 0:
            tally.add((yield candidate))
        if tally.failures:
            self._accepted.append(candidate)
        return tally.failures > 0

    def _now(self) -> SmallerRun:
        return self._accepted[-1]

    def _events(self) -> SearchStage:
        yield from self._ends_early()
        yield from self._begins_late()
        events = self._now().events
        if len(events) > 2 and not (yield from self._only((events[0], events[-1]))):
            yield from self._ddmin()
        yield from self._one_by_one()

    def _only(self, events: tuple[int, ...]) -> SearchSteps:
        return (yield from self._fails(replace(self._now(), events=events)))

    def _ends_early(self) -> SearchStage:
        """The shortest beginning of the schedule that fails, with a load that ends soon after it."""
        events = self._whole.events
        low, high = -1, len(events)
        likely = self._likely
        while high - low > 1:
            middle = likely if likely is not None and low < likely < high else (low + high) // 2
            likely = None
            if (yield from self._fails(SmallerRun(events[:middle], PlayingPace.CUT))):
                high = middle
            else:
                low = middle

    def _begins_late(self) -> SearchStage:
        """The shortest end of that beginning that fails: the fault that matters is often near the last one."""
        events = self._now().events
        low, high = 0, len(events)
        while high - low > 1:
            near = high - 1 if high > len(events) - 2 else (low + high) // 2
            if (yield from self._fails(SmallerRun(events[near:], PlayingPace.SHIFTED))):
                low = near
            else:
                high = near

    def _ddmin(self) -> SearchStage:
        """Delta debugging of the injections between the first and the last."""
        parts = 2
        while len(rest := self._now().events[1:-1]) >= parts:
            ends = self._now().events[0], self._now().events[-1]
            chunks = list(_chunks(rest, parts))
            without = [tuple(each for each in rest if each not in chunk) for chunk in chunks] if parts > 2 else []
            for number, some in enumerate([*chunks, *without]):
                if (yield from self._only((ends[0], *some, ends[1]))):
                    parts = 2 if number < len(chunks) else max(parts - 1, 2)
                    break
            else:
                if parts >= len(rest):
                    return
                parts = min(2 * parts, len(rest))

    def _one_by_one(self) -> SearchStage:
        """Until no single injection can be left out. What was tried before is not tried again."""
        number = 0
        while number < len(events := self._now().events):
            left_out = yield from self._only(events[:number] + events[number + 1 :])
            number = 0 if left_out else number + 1

    def _durations(self) -> SearchStage:
        """The fastest pace that fails."""
        for pace in reversed(PlayingPace):
            if pace <= self._now().pace or (yield from self._fails(replace(self._now(), pace=pace))):
                return

    def _loads(self) -> SearchStage:
        """The smallest value of each setting that fails."""
        for name, values in self._load.items():
            for value in values:
                if (yield from self._fails(replace(self._now(), load=(*self._now().load, (name, value))))):
                    break


def patience(before: TryCount) -> int:
    """The number of tries after which something that fails this often is unlikely to have passed every time."""
    passes = 1 - (before.failures + 0.5) / (before.runs + 1)
    tries, missed = 1, passes
    while missed > MISS and tries < MOST_TRIES:
        tries, missed = tries + 1, missed * passes
    return tries


def _chunks(items: Sequence[int], parts: int) -> Iterator[tuple[int, ...]]:
    begin = 0
    for part in range(parts):
        end = begin + (len(items) - begin) // (parts - part)
        yield tuple(items[begin:end])
        begin = end
