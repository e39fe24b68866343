"""Delta debugging: of some things that together make something fail, few that still do.

Owns the search: ddmin of Zeller and Hildebrandt ("Simplifying and Isolating Failure-Inducing Input", 2002), without its
trials of single pieces. What fails needs several moves as a rule, and they seldom lie in one piece: only what is left
without a piece is tried. In the end pairs are left out too, since one move may need another to be harmless. Does not
own what failing is: that is a predicate's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Smallest(Generic[T]):
    """What was found, in how many ``trials``. ``is_minimal``: without any one item, or any two, it does not fail."""

    items: tuple[T, ...]
    trials: int
    is_minimal: bool


class _OutOfTrials(Exception):
    """As many subsets were tried as may be."""


class _Search(Generic[T]):
    """``items`` are the fewest so far that fail."""

    def __init__(self, items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool], most_trials: int) -> None:
        self.items = items
        self.trials = 0
        self._fails = fails
        self._most_trials = most_trials
        self._asked: set[tuple[T, ...]] = set()

    def go_on_with(self, rest: tuple[T, ...]) -> bool:
        """Whether these fail too; what is asked once more did not."""
        if rest in self._asked:
            return False
        if self.trials >= self._most_trials:
            raise _OutOfTrials
        self._asked.add(rest)
        self.trials += 1
        if self._fails(rest):
            self.items = rest
            return True
        return False

    def without_pieces(self, size: int) -> bool:
        """Leave out one piece of this size after the other; whether one was."""
        position, before = 0, self.items
        while position < len(self.items):
            if not self.go_on_with(self.items[:position] + self.items[position + size :]):
                position += size
        return self.items != before

    def without_two(self) -> bool:
        """Leave out any two; whether that went."""
        all_but_two = list(combinations(self.items, len(self.items) - 2)) if len(self.items) > 2 else []
        return any(self.go_on_with(rest) for rest in all_but_two)

    def run(self) -> None:
        # First all at once: what fails without any of them needs none.
        size = len(self.items)
        while size:
            has_shrunk = self.without_pieces(size)
            if size > 1:
                size = min(size, len(self.items)) // 2 or len(self.items)
            elif not has_shrunk and not self.without_two():
                return


def smallest(items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool], most_trials: int) -> Smallest[T]:
    """The few of ``items``, in their order, that still fail. All of them are known to; ``fails`` is asked of each other
    subset once, and ``most_trials`` times at most.
    """
    search = _Search(items, fails, most_trials)
    try:
        search.run()
    except _OutOfTrials:
        return Smallest(search.items, search.trials, is_minimal=False)
    return Smallest(search.items, search.trials, is_minimal=True)
