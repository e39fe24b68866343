"""The producer user. Owns its life, and the choice of its writer by the kind of the load.

Does not own what the writer of each kind does (``streams``, ``transactional``), or how long it writes at a time
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
    """The work of one producer user. Created when the user starts."""

    def write_due(self, now_ns: int) -> int:
        """Write records that are due, or some of them. Returns the ns until the next call."""
        ...

    def finish(self) -> None:
        """Stop writing: wait a limited time for outstanding records, and close everything."""
        ...


#: Kind of load -> function that makes its writer from the load process and the bootstrap servers.
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
