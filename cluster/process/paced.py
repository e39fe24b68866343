"""Log lines that a client can cause as often as it likes: a few of each kind in ten seconds, the others counted.

Owns what is of one kind. Without a bound, one client that is refused 3,000 times a second fills 2 GB of a broker's log
in an hour. Knows nothing of what is logged; the time is that of the records themselves. Does not own the count
(``cluster.seams.pace``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from cluster.seams.pace import Pace

MOST = 20
EACH_S = 10.0


class Paced(logging.Filter):
    """A filter for a handler: it bounds the lines of the loggers named ``loggers``, and lets all others pass.

    Lines are of one kind if their message is the same but for its arguments.
    """

    def __init__(self, loggers: Iterable[str], most: int = MOST, each_s: float = EACH_S) -> None:
        super().__init__()
        self._loggers = frozenset(loggers)
        self._most = most
        self._each_s = each_s
        self._paces: dict[str, Pace] = {}

    def __repr__(self) -> str:
        return f"<Paced: {self._most} in {self._each_s} s, {len(self._paces)} kinds of {sorted(self._loggers)}>"

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is logged. The first one after a pause says how many of its kind were not."""
        if record.name not in self._loggers:
            return True
        left_out = self._paces.setdefault(record.msg, Pace(self._most, self._each_s)).take(record.created)
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out} more like this were not logged)"
            record.args = ()
        return left_out is not None
