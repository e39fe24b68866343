"""A load process: one hub, one recorder, one poller for all producer streams. Owns what its users share, and its end.

Does not own when it starts (``loadgen.users.load``). Calls from the hub never block: clients are polled without
waiting, and those that are not plain Python are closed in the hub's thread pool. The first SIGINT or SIGTERM stops the
users, which wait a limited time for outstanding records, lets Locust write its reports, and closes the history. Further
signals have no effect.
"""

from __future__ import annotations

import atexit
import itertools
import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import gevent
from locust.runners import WorkerRunner

from cluster.seams.clock import SystemClock
from cluster.seams.units import ms_of_ns, ns_of_seconds
from loadgen.clients.base import ProducerClient, ProducerFactory
from loadgen.clients.choice import producer_factory
from loadgen.group_plan import MemberPlace, Members, parse_members, places
from loadgen.kinds import BANK
from loadgen.orders import OrderBook
from loadgen.pace import partition_of
from loadgen.recorder import Recorder
from loadgen.records import StreamRecords, TransferRecords
from loadgen.settings import LoadSettings
from loadgen.stream import ProducerStream
from loadgen.unwritten import WrittenState, likely_cause
from loadgen.users.disposals import Disposals
from loadgen.users.exit_status import MasterTeller
from loadgen.users.standalone_load import Beginning
from loadgen.users.statistics import LocustStatistics

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.002
TICK_INTERVAL_S = 0.1
#: With acks=0, how long to wait for the last records to arrive, and for reports of a refusal (librdkafka: every 0.5 s).
UNANSWERED_S = 1.0


class LoadProcess:
    """The state that all users of one Locust process share."""

    def __init__(self, environment: Any, begun: Beginning) -> None:
        options, self.begins = begun.options, begun.begins
        self.environment = environment
        self.clock = SystemClock()
        self.settings: LoadSettings = options.settings
        self.process = options.process
        self.run = options.run
        self.stopping = False
        self._sizes, self._keys = self.settings.sizes, self.settings.key_choice
        self._streams: list[ProducerStream] = []
        self._numbers = itertools.count(self.settings.first_stream)
        self._readers = itertools.count()
        self._closed = False
        self.disposals = Disposals()
        #: producer user -> the number of its records that are due but not sent
        self.backlogs: dict[int, int] = {}
        self._statistics = LocustStatistics(environment, self.clock)
        self.recorder = Recorder(
            options.process,
            options.run.history(options.process),
            self.clock,
            status=options.run.status_json(options.process),
            series=options.run.series_jsonl(options.process),
            observer=self._statistics.count,
            backlog=lambda: sum(self.backlogs.values()),
        )
        self._master = MasterTeller(environment.runner)
        self._greenlets = [gevent.spawn(self._poll_forever), gevent.spawn(self._tick_forever)]
        atexit.register(self._close_at_exit)

    @property
    def users_number(self) -> int:
        """The number of streams that were started so far."""
        return len(self._streams)

    def next_numbers(self, count: int) -> list[int]:
        """Consecutive numbers for this many new streams, unique in the run."""
        return [next(self._numbers) for _ in range(count)]

    def new_stream(
        self,
        bootstrap: str,
        number: int,
        make_client: ProducerFactory | None = None,
        dispose: Callable[[ProducerClient], None] | None = None,
    ) -> ProducerStream:
        """A stream of a number that was given for it (``next_numbers``). Raises ``KafkaException`` for a bad setting.

        It has a client of its own, unless it is given how it comes to one and lets go of it.
        """
        settings = self.settings
        own = f"{self.process}-{number}"
        stream = ProducerStream(
            stream=number,
            topic=settings.topic,
            partition=partition_of(number, settings.partitions),
            records=self._records(number),
            recorder=self.recorder,
            clock=self.clock,
            make_client=make_client or producer_factory(bootstrap, own, settings, self.clock),
            dispose=dispose or self.disposals.dispose,
            acks=settings.acks,
            reserve_sequences=settings.reserve_sequences,
        )
        self._streams.append(stream)
        return stream

    def _records(self, number: int) -> StreamRecords:
        if self.settings.kind == BANK:
            return TransferRecords(self.settings.run_id, number, self._sizes)
        return StreamRecords(self.settings.run_id, number, self._sizes, self._keys)

    @cached_property
    def members(self) -> Members:
        """The members of the load's group, in all processes."""
        return parse_members(self.settings.members or {})

    @cached_property
    def member_places(self) -> Iterator[MemberPlace]:
        """The places of this process in the group; each member user takes the next one."""
        (client,) = (client for name, client, _ in self.members.processes() if name == self.process)
        return iter(places(self.members, client))

    @cached_property
    def orders(self) -> OrderBook:
        """The orders to members of this process."""
        return OrderBook(self.run.orders_jsonl(self.process))

    def next_reader(self) -> str:
        """The client for the next reader, in the order of the settings, over and over."""
        return self.settings.readers[next(self._readers) % len(self.settings.readers)]

    def finish(self, stream: ProducerStream) -> None:
        """Wait until nothing is outstanding, at most for the flush timeout, then close the stream."""
        deadline_ns = self.clock.monotonic_ns() + ns_of_seconds(self.settings.flush_timeout_s)
        try:
            while stream.outstanding and self.clock.monotonic_ns() < deadline_ns:
                gevent.sleep(0.005)  # outcomes come in callbacks, which need the event loop
            if self.settings.acks == "0":
                gevent.sleep(UNANSWERED_S)
        finally:
            stream.close()

    @property
    def is_to_be_read_back(self) -> bool:
        """Whether this process has all of a standalone load. In a distributed one, each process has only a part."""
        options = self.environment.parsed_options
        whole = bool(self.begins) and not isinstance(self.environment.runner, WorkerRunner)
        return whole and self.told.has_written and options.kafka_read_back == "yes"

    @property
    def told(self) -> WrittenState:
        """Whether anything was acknowledged so far and, if not, the likely cause."""
        if self.recorder.tally.total("acked"):
            return WrittenState(True)
        return WrittenState(False, likely_cause(self.recorder.producer_errors))

    def settle_statistics(self) -> None:
        """Merge the remaining statistics before Locust writes its reports."""
        self._statistics.merge()

    def stop(self) -> None:
        """Stop the users, then end Locust, as on a signal. A second call has no effect."""
        if self.stopping:
            logger.info("already stopping")
            return
        self.stopping = True
        logger.info("stopping: producers finish within %.1f s", self.settings.flush_timeout_s)
        self.environment.runner.quit()
        if self.environment.web_ui is not None:
            self.environment.web_ui.stop()

    def fail(self, error: BaseException) -> None:
        """End the load after an error that it cannot handle, such as a full disk or a bug.

        A load that cannot be recorded must not continue. Its history is marked as incomplete.
        """
        self.recorder.history.mark_incomplete()
        if self.environment.process_exit_code is None:
            logger.critical("the load ends, its history is incomplete: %r", error, exc_info=error)
            self.environment.process_exit_code = 255
            gevent.spawn(self.stop)

    def close(self) -> None:
        """Close everything that is still open, the history last. A second call has no effect."""
        if self._closed:
            return
        self._closed = True
        try:
            for stream in self._streams:
                stream.close()
            self.disposals.wait()
        finally:
            gevent.killall(self._greenlets)
            self.recorder.close()
            logger.info("history closed: %s", self.recorder)

    def _close_at_exit(self) -> None:
        """Close only the streams and the history, without hub and threads: the last resort after an error in Locust."""
        if self._closed:
            return
        self._closed = True
        self.disposals.abandon()
        try:
            for stream in self._streams:
                stream.close()
        finally:
            self.recorder.close()

    def _poll_forever(self) -> None:
        while True:
            try:
                for stream in self._streams:
                    stream.poll()
            except Exception as error:  # if the poller ended silently, no record would get an outcome anymore
                self.fail(error)
            gevent.sleep(POLL_INTERVAL_S)

    def _tick_forever(self) -> None:
        while True:
            before_ns = self.clock.monotonic_ns()
            gevent.sleep(TICK_INTERVAL_S)
            late_ns = self.clock.monotonic_ns() - before_ns - ns_of_seconds(TICK_INTERVAL_S)
            self.recorder.tally.loop_lag(max(0.0, ms_of_ns(late_ns)))
            try:
                self.recorder.tick()
                self._statistics.merge_if_due()
                self._master.tell(self.told)
            except Exception as error:
                self.fail(error)

    def __repr__(self) -> str:
        return f"LoadProcess({self.process}, streams={len(self._streams)}, stopping={self.stopping})"
