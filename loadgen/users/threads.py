"""Does blocking work in a greenlet or in a thread of the pool, so that the hub is not blocked. Knows no users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import gevent

from loadgen.settings import SettingsError

T = TypeVar("T")


def begin_waiting(is_cooperative: bool, work: Callable[[], object]) -> Any:
    """Start blocking work: in a greenlet if it yields to others while it waits, else in the hub's thread pool."""
    return gevent.spawn(work) if is_cooperative else gevent.get_hub().threadpool.spawn(work)


def in_thread(work: Callable[[], T]) -> T:
    """Do blocking work in the hub's thread pool.

    Its ``SettingsError`` or ``OSError`` is raised here: the pool would only print it.
    """

    def guarded() -> T | SettingsError | OSError:
        try:
            return work()
        except (SettingsError, OSError) as error:
            return error

    result: T | SettingsError | OSError = gevent.get_hub().threadpool.apply(guarded)
    if isinstance(result, SettingsError | OSError):
        raise result
    return result
