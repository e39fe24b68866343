"""Adjusts Locust until the load has begun: hides its empty tables, and starts its time limit at the right time.

Locust prints a table every two seconds, and a summary at the end, even if there was nothing to count. The line that
says why the load did not begin would be lost among them. Does not own when the load begins (``loadgen.users.load``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import gevent

#: The loggers with which Locust prints its tables, and reports a ``SystemExit``.
_TABLES = "locust.stats_logger"
_RUNNERS = "locust.runners"


def leave_out_until(has_begun: Callable[[], bool]) -> None:
    """Until ``has_begun``, hide empty tables, and Locust's line about an exit that was explained already."""
    logging.getLogger(_TABLES).addFilter(lambda _: has_begun())
    logging.getLogger(_RUNNERS).addFilter(lambda record: has_begun() or not record.getMessage().startswith("sys.exit("))


def count_from_now() -> None:
    """Update the event loop's time, from which timers count, since it is outdated after loading code.

    Without this, ``--run-time`` would be shorter by the time that loading took.
    """
    gevent.get_hub().loop.update_now()
