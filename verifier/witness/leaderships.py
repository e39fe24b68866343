"""Who led when, as far as the conductor saw: what follows from its looks at leaders. Pure.

Three looks at 0, 100 and 200 s saw epoch 1 of broker 1, epoch 2 of broker 2 and epoch 3 of broker 1. Broker 1 led until
100 s at most, and again from 100 s on at least (that look still saw epoch 2): a request that was on its way to it from
90 s to 210 s can have waited for its second term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Sighting(NamedTuple):
    """The conductor saw this epoch first at ``time_ns``; at ``before_ns`` it still saw the one before (None: never).

    ``leader``: who led in it, None if that is not recorded.
    """

    epoch: int
    before_ns: int | None
    time_ns: int
    leader: int | None = None


class Leadership(NamedTuple):
    """One epoch: it began after ``begin_ns``, the last look that saw another, and was over by ``end_ns``."""

    epoch: int
    leader: int | None
    begin_ns: int
    end_ns: int


class Return(NamedTuple):
    """The leader of this epoch had led before: until ``left_ns`` at most, and again from ``back_ns`` on at least."""

    epoch: int
    left_ns: int
    back_ns: int


def leaderships(seen: Sequence[Sighting]) -> list[Leadership]:
    """The epochs that were seen, each until another one was."""
    ends = [*(each.time_ns for each in seen[1:]), 2**62]
    return [
        Leadership(each.epoch, each.leader, each.before_ns or 0, end_ns)
        for each, end_ns in zip(seen, ends, strict=False)
    ]


def led_since(led: Sequence[Leadership]) -> dict[int, int]:
    """For each epoch, when its leader can have begun to lead for the first time.

    Who is not recorded may be any broker.
    """
    return {
        each.epoch: min(
            other.begin_ns for other in led if other.epoch <= each.epoch and other.leader in (each.leader, None)
        )
        for each in led
        if each.leader is not None
    }


def returns(led: Sequence[Leadership]) -> list[Return]:
    """The epochs of leaders that others replaced for a while. Only leaders that are recorded count."""
    found: list[Return] = []
    known = [each for each in led if (each.leader or -1) >= 0]
    for index, each in enumerate(known):
        others = [before for before, other in enumerate(known[:index]) if other.leader != each.leader]
        if not others:
            continue
        former = [other.end_ns for other in known[: others[-1]] if other.leader == each.leader]
        if former:
            found.append(Return(each.epoch, max(former), known[others[-1] + 1].begin_ns))
    return found
