"""Closes clients that are no longer used, without blocking the hub. Owns the threads for that, and the time limits.

Does not own when a client is no longer used (``loadgen.stream``), nor what closing one does (``loadgen.clients``).
"""

from __future__ import annotations

from typing import Any

import gevent

from loadgen.clients.base import ProducerClient, RecordReader
from loadgen.users.threads import begin_waiting

TIMEOUT_S = 2.0


class Disposals:
    """The clients that one Locust process is closing. Nothing here raises what a client raises."""

    def __init__(self) -> None:
        self._tasks: list[Any] = []
        self._is_over = False

    def __repr__(self) -> str:
        return f"Disposals({sum(not task.ready() for task in self._tasks)} running)"

    def dispose(self, client: ProducerClient) -> None:
        """Start closing a producer. After ``abandon``, leave it until the process ends."""
        if self._is_over:
            return
        self._tasks = [task for task in self._tasks if not task.ready()]
        self._tasks.append(begin_waiting(client.is_cooperative, lambda: client.dispose(TIMEOUT_S)))

    def close_reader(self, reader: RecordReader) -> None:
        """Close a consumer. If that takes too long, leave it until the process ends."""
        with gevent.Timeout(TIMEOUT_S, False):
            begin_waiting(reader.is_cooperative, reader.close).get()

    def wait(self) -> None:
        """Wait until all clients are closed, for a limited time."""
        gevent.joinall(self._tasks, timeout=2 * TIMEOUT_S)

    def abandon(self) -> None:
        """Close nothing from now on, because neither the hub nor threads run anymore."""
        self._is_over = True
