"""Delta debugging: of some things that together make something fail, few that still do.

Owns the search: ddmin of Zeller and Hildebrandt ("Simplifying and Isolating Failure-Inducing Input", 2002), without its
trials of single pieces. What fails needs several moves as a rule, and they seldom lie in one piece: only what is left
without a piece is tried. Does not own what failing is: that is a predicate's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class OutOfTrials(Exception):
    """As many subsets were tried as may be."""


@dataclass(frozen=True)
class Smallest(Generic[T]):
    """What was found in so many ``trials``. ``is_minimal``: without any one of the items it does not fail."""

    items: tuple[T, ...]
    trials: int
    is_minimal: bool


class _Asked(Generic[T]):
    """The predicate, asked of each subset once."""

    def __init__(self, fails: Callable[[tuple[T, ...]], bool], most_trials: int) -> None:
        self._fails = fails
        self._most_trials = most_trials
        self.answers: dict[tuple[T, ...], bool] = {}

    def __call__(self, subset: tuple[T, ...]) -> bool:
        if subset not in self.answers:
            if len(self.answers) >= self._most_trials:
                raise OutOfTrials
            self.answers[subset] = self._fails(subset)
        return self.answers[subset]


def smallest(items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool], most_trials: int) -> Smallest[T]:
    """The few of ``items``, in their order, that still fail. All of them are known to; ``fails`` is asked of each other
    subset once, and ``most_trials`` times at most.
    """
    asked = _Asked(fails, most_trials)
    # First all at once: what fails without any of them needs none.
    size, has_shrunk = len(items), False
    position = 0
    try:
        while items:
            if position >= len(items):
                if size == 1 and not has_shrunk:
                    break
                position, has_shrunk = 0, False
                size = max(1, min(size, len(items)) // 2)
                continue
            rest = items[:position] + items[position + size :]
            if asked(rest):
                items, has_shrunk = rest, True
            else:
                position += size
    except OutOfTrials:
        return Smallest(items, len(asked.answers), is_minimal=False)
    return Smallest(items, len(asked.answers), is_minimal=True)
