"""The producer user: what it writes is decided by the kind of the load. Owns that choice and the user's life.

Does not own what a writer of each kind does (``streams``, ``transactional``), nor how long it writes at a time
(``slices``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from locust import User, constant, task

from loadgen.kinds import BANK, STREAMS, TRANSACTIONS
from loadgen.users.load import process_of
from loadgen.users.process import LoadProcess
from loadgen.users.slices import for_a_slice
from loadgen.users.streams import StreamWriter
from loadgen.users.transactional import TransactionalWriter


class Writer(Protocol):
    """What one producer user does. It is made when the user starts."""

    def write_due(self, now_ns: int) -> int:
        """Write what is due now, or some of it; nanoseconds until the next look."""
        ...

    def finish(self) -> None:
        """Write no more: what is outstanding is waited for, with a bound, and everything is closed."""
        ...


#: Kind -> its writer, made of the load process and the bootstrap servers.
WRITERS: dict[str, Callable[[LoadProcess, str], Writer]] = {
    STREAMS: StreamWriter,
    TRANSACTIONS: TransactionalWriter,
    BANK: TransactionalWriter,
}


class ProducerUser(User):  # type: ignore[misc]
    """Writes one stream, or the streams of one transactional producer, or whatever the kind of the load says."""

    abstract = False
    wait_time = constant(0)

    def on_start(self) -> None:
        self._process = process_of(self.environment)
        settings = self._process.settings
        self._writer = WRITERS[settings.kind](self._process, self.environment.host or settings.producers_bootstrap)

    @task  # type: ignore[untyped-decorator]
    def produce(self) -> None:
        """Write for one slice."""
        for_a_slice(self._process.clock, self._writer.write_due)

    def on_stop(self) -> None:
        self._writer.finish()
