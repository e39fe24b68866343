"""Locust until the load has begun. Owns what its console leaves out until then, and that its time limit is a whole one.

Locust prints a table every two seconds, and its summary at the end, whether or not there was anything to count: the one
line that says why nothing began would be lost among them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import gevent

#: Where Locust prints its tables, and where it says that someone left by ``SystemExit``.
_TABLES = "locust.stats_logger"
_RUNNERS = "locust.runners"


def leave_out_until(has_begun: Callable[[], bool]) -> None:
    """Until then, no empty tables, and no second line about an exit that was explained."""
    logging.getLogger(_TABLES).addFilter(lambda _: has_begun())
    logging.getLogger(_RUNNERS).addFilter(lambda record: has_begun() or not record.getMessage().startswith("sys.exit("))


def count_from_now() -> None:
    """Timers count from when the loop last looked at its clock, and it has not while all was loaded.

    Without this, the time that loading took would be missing from ``--run-time``.
    """
    gevent.get_hub().loop.update_now()
