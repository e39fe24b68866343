"""Log lines that a client can cause as often as it likes: a few of each kind in ten seconds, the others counted.

Owns that bound. Without it, one client that is refused 3,000 times a second fills 2 GB of a broker's log in an hour.
Knows nothing of what is logged; the time is that of the records themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

MOST = 20
EACH_S = 10.0


@dataclass(slots=True)
class _Period:
    begun_s: float
    logged: int = 0
    left_out: int = 0


class Paced(logging.Filter):
    """A filter for a handler: it bounds the lines of the loggers named ``loggers``, and lets all others pass.

    Lines are of one kind if their message is the same but for its arguments.
    """

    def __init__(self, loggers: Iterable[str], most: int = MOST, each_s: float = EACH_S) -> None:
        super().__init__()
        self._loggers = frozenset(loggers)
        self._most = most
        self._each_s = each_s
        self._periods: dict[str, _Period] = {}

    def __repr__(self) -> str:
        return f"<Paced: {self._most} in {self._each_s} s, {len(self._periods)} kinds of {sorted(self._loggers)}>"

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is logged. The first one after a pause says how many of its kind were not."""
        if record.name not in self._loggers:
            return True
        period = self._periods.setdefault(record.msg, _Period(record.created))
        if record.created - period.begun_s >= self._each_s:
            left_out = period.left_out
            self._periods[record.msg] = period = _Period(record.created)
            if left_out:
                record.msg = f"{record.getMessage()} ({left_out} more like this were not logged)"
                record.args = ()
        if period.logged >= self._most:
            period.left_out += 1
            return False
        period.logged += 1
        return True
