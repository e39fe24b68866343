"""Lines that a client causes are bounded, by their kind and time, and what is left out is counted."""

from __future__ import annotations

import io
import logging

from cluster.broker import config_store, server
from cluster.broker.handlers import produce
from cluster.broker.main import CAUSED_BY_CLIENTS
from cluster.process.paced import MOST, Paced
from cluster.seams import asyncio_connection


def line(at_s: float, message: str, *arguments: object, name: str = "closing") -> logging.LogRecord:
    record = logging.LogRecord(name, logging.WARNING, __file__, 1, message, arguments, None)
    record.created = at_s
    return record


def test_a_kind_is_logged_a_few_times_and_then_counted() -> None:
    """Each kind has its own bound, whatever the arguments; per cent signs in them are text."""
    paced = Paced(["closing"], most=3, each_s=10)
    first = [line(100 + n / 10, "closing %s: %s", n, "100%s") for n in range(10)]
    assert [paced.filter(record) for record in first] == [True] * 3 + [False] * 7
    assert paced.filter(line(100.5, "another"))
    late = line(109.9, "closing %s: %s", 10, "late")
    assert not paced.filter(late)
    again = line(110, "closing %s: %s", 11, "100%s")
    assert paced.filter(again)
    assert again.getMessage() == "closing 11: 100%s (8 more like this were not logged)"
    assert paced.filter(line(110.1, "closing %s: %s", 12, "")), "a new period has a bound of its own"
    silent = line(130, "closing %s: %s", 13, "")
    assert paced.filter(silent)
    assert silent.getMessage() == "closing 13: "


def test_only_what_clients_cause_is_paced() -> None:
    """The loggers are those that log; a failure of the broker's own is told each time."""
    callers = (asyncio_connection.logger.name, server.logger.name, produce.logger.name, config_store.logger.name)
    assert callers == CAUSED_BY_CLIENTS
    handler = logging.StreamHandler(io.StringIO())
    handler.addFilter(Paced(CAUSED_BY_CLIENTS))
    for n in range(2 * MOST):
        handler.handle(line(1, "%d closed", n, name=asyncio_connection.logger.name))
        handler.handle(line(1, "%d failed", n, name="cluster.broker.node"))
    told = handler.stream.getvalue()
    assert (told.count(" closed"), told.count(" failed")) == (MOST, 2 * MOST)
