"""A load process: one hub, one recorder, one poller for all producer streams. Owns what its users share, and its end.

Does not own when it starts (``loadgen.users.load``). What is called from the hub never blocks: clients are polled
without waiting, and those that are not Python's are closed in the hub's thread pool. The first SIGINT or SIGTERM stops
the users (who finish what is outstanding, with a bound), lets Locust write its reports and closes the history; a
further signal changes nothing.
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
#: With acks=0, for what was sent last to arrive, and for a refusal to be told (librdkafka: twice a second).
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
        #: How far each producer user is behind its schedule.
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
        """How many streams were started so far."""
        return len(self._streams)

    def next_numbers(self, count: int) -> list[int]:
        """Numbers for as many streams, in a row, never given before in this run."""
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
        """The members of the load's group, of all processes."""
        return parse_members(self.settings.members or {})

    @cached_property
    def member_places(self) -> Iterator[MemberPlace]:
        """The places of this process in the group; each member user takes the next one."""
        (client,) = (client for name, client, _ in self.members.processes() if name == self.process)
        return iter(places(self.members, client))

    @cached_property
    def orders(self) -> OrderBook:
        """What members of this process are ordered to do."""
        return OrderBook(self.run.orders_jsonl(self.process))

    def next_reader(self) -> str:
        """The client for the next reader: readers take those of the settings in turn."""
        return self.settings.readers[next(self._readers) % len(self.settings.readers)]

    def finish(self, stream: ProducerStream) -> None:
        """Wait until nothing is outstanding, at most for the flush timeout, then close the stream."""
        deadline_ns = self.clock.monotonic_ns() + ns_of_seconds(self.settings.flush_timeout_s)
        try:
            while stream.outstanding and self.clock.monotonic_ns() < deadline_ns:
                gevent.sleep(0.005)  # outcomes come by callbacks, which need the loop
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
        """Whether anything was acknowledged so far, and if not, why, as far as producers were told."""
        if self.recorder.tally.total("acked"):
            return WrittenState(True)
        return WrittenState(False, likely_cause(self.recorder.producer_errors))

    def settle_statistics(self) -> None:
        """Locust is about to write its reports: include what was kept for the next merge."""
        self._statistics.merge()

    def stop(self) -> None:
        """What a signal does: the users stop, then Locust ends. A second call does nothing."""
        if self.stopping:
            logger.info("already stopping")
            return
        self.stopping = True
        logger.info("stopping: producers finish within %.1f s", self.settings.flush_timeout_s)
        self.environment.runner.quit()
        if self.environment.web_ui is not None:
            self.environment.web_ui.stop()

    def fail(self, error: BaseException) -> None:
        """Something went wrong that the load cannot handle (a full disk, a bug of ours).

        What is not recorded must not continue: the load ends, and its history says that it is incomplete.
        """
        self.recorder.history.mark_incomplete()
        if self.environment.process_exit_code is None:
            logger.critical("the load ends, its history is incomplete: %r", error, exc_info=error)
            self.environment.process_exit_code = 255
            gevent.spawn(self.stop)

    def close(self) -> None:
        """Close what is still open, the history last. A second call does nothing."""
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
        """The last resort, after an exception somewhere in Locust: no hub, no threads, only the records."""
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
            except Exception as error:  # a poller that died silently would leave everything outstanding
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
