"""Pace: how many lines a log gets of what can happen as often as someone likes, and how many it did not get.

Owns the count in a period. Does not own the lines: which are of one kind (``cluster.process.paced``), and how those
that were left out are told. Pure: the caller says what time it is, in a unit of its own.
"""

from __future__ import annotations


class Pace:
    """``most`` lines in a period, which begins with its first line. ``period`` has the unit of every ``now``."""

    __slots__ = ("_begun", "_left_out", "_logged", "_most", "_period")

    def __init__(self, most: int, period: float) -> None:
        self._most = most
        self._period = period
        self._begun: float | None = None
        self._logged = 0
        self._left_out = 0

    def __repr__(self) -> str:
        return f"Pace({self._most} in {self._period}, {self._left_out} left out)"

    def take(self, now: float) -> int | None:
        """None if a line is to be left out now, which is counted. Else how many were left out in the last period, which
        the line may add."""
        left_out = 0
        if self._is_over(now):
            self._begun, self._logged = now, 0
            left_out, self._left_out = self._left_out, 0
        elif self._logged >= self._most:
            self._left_out += 1
            return None
        self._logged += 1
        return left_out

    def take_summary(self, now: float) -> int:
        """How many were left out in a period that is over, for a line of their own, which begins the next period; 0 if
        there is nothing to tell."""
        return (self.take(now) or 0) if self._left_out and self._is_over(now) else 0

    def _is_over(self, now: float) -> bool:
        return self._begun is None or now - self._begun >= self._period
