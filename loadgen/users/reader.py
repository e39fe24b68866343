"""The reader user: one consumer that reads all partitions from the first record. Owns only its loop under Locust."""

from __future__ import annotations

from locust import User, constant, task

from loadgen.clients.choice import reader
from loadgen.reading import PartitionReader
from loadgen.users.load import process_of
from loadgen.users.slices import for_a_slice

IDLE_NS = 5_000_000
POLL_RECORDS = 500
#: The time between two requests for the end offsets.
ASK_ENDS_NS = 500_000_000


class ReaderUser(User):  # type: ignore[misc]
    """Reads every partition by assignment, from the first record on."""

    abstract = False
    wait_time = constant(0)

    def on_start(self) -> None:
        self._process = process_of(self.environment)
        settings = self._process.settings
        bootstrap = self.environment.host or settings.readers_bootstrap
        client = self._process.next_reader()
        is_committed = settings.reads_committed(client, is_final=False)
        self._client = reader(client, bootstrap, self._process.process, settings, is_committed=is_committed)
        self._reader = PartitionReader(
            topic=settings.topic,
            offsets={number: self._process.begins.get(number, 0) for number in range(settings.partitions)},
            run_id=settings.run_id,
            reader=self._client,
            recorder=self._process.recorder,
            clock=self._process.clock,
            is_committed=is_committed,
        )
        self._reader.start()
        self._asked_ns = self._process.clock.monotonic_ns()

    @task  # type: ignore[untyped-decorator]
    def read(self) -> None:
        """Poll for one slice."""
        now_ns = self._process.clock.monotonic_ns()
        if now_ns - self._asked_ns >= ASK_ENDS_NS:
            self._asked_ns = now_ns
            self._reader.ask_ends()
        for_a_slice(self._process.clock, self._poll)

    def _poll(self, _now_ns: int) -> int:
        return 0 if len(self._reader.poll(POLL_RECORDS, 0)) == POLL_RECORDS else IDLE_NS

    def on_stop(self) -> None:
        self._reader.finish()
        self._process.disposals.close_reader(self._client)
