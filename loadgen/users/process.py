"""A load process: one hub, one recorder, one poller for all producer streams. Owns its start and its end.

What is called from the hub never blocks: clients are polled without waiting, and those that are not Python's are
closed in the hub's thread pool. The first SIGINT or SIGTERM stops the users (who finish what is outstanding, with a
bound), lets Locust write its reports and closes the history; a further signal changes nothing.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import signal
from functools import partial
from typing import Any

import gevent
from locust.runners import MasterRunner, WorkerRunner

from cluster.seams.clock import SystemClock
from loadgen.clients.base import ProducerClient, RecordReader
from loadgen.clients.choice import check_client_config, left_out, producer_factory
from loadgen.hosts import checked_host
from loadgen.pace import partition_of
from loadgen.recorder import Recorder
from loadgen.records import StreamRecords
from loadgen.settings import LoadSettings, SettingsError
from loadgen.stream import ProducerStream
from loadgen.topics import why_not_written
from loadgen.unwritten import WrittenState, likely_cause
from loadgen.users.by_hand import Beginning, begin, read_back
from loadgen.users.options import is_conducted, resolve_options
from loadgen.users.statistics import LocustStatistics
from loadgen.users.threads import begin_waiting, in_thread
from loadgen.users.written import MasterTeller, fail_unless_written

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.002
TICK_INTERVAL_S = 0.1
DISPOSE_TIMEOUT_S = 2.0
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
        self._disposals: list[Any] = []
        self._closed = False
        self.recorder = Recorder(
            options.process,
            options.run.history(options.process),
            self.clock,
            status=options.run.status_json(options.process),
            series=options.run.series_jsonl(options.process),
            observer=lambda request: self._statistics.count(request),
        )
        self.backlogs: dict[int, int] = {}
        self.recorder.backlog = lambda: sum(self.backlogs.values())
        self._statistics = LocustStatistics(environment, self.clock)
        self._master = MasterTeller(environment.runner)
        self._greenlets = [gevent.spawn(self._poll_forever), gevent.spawn(self._tick_forever)]
        atexit.register(self._close_at_exit)

    @property
    def users_number(self) -> int:
        """How many streams were started so far."""
        return len(self._streams)

    def new_stream(self, bootstrap: str) -> ProducerStream:
        """A stream of its own number, never given before in this run. Raises ``KafkaException`` for a bad setting."""
        settings = self.settings
        number = next(self._numbers)
        stream = ProducerStream(
            stream=number,
            topic=settings.topic,
            partition=partition_of(number, settings.partitions),
            records=StreamRecords(settings.run_id, number, self._sizes, self._keys),
            recorder=self.recorder,
            clock=self.clock,
            make_client=producer_factory(bootstrap, f"{self.process}-{number}", settings, self.clock),
            dispose=self._dispose,
            acks=settings.acks,
            reserve_sequences=settings.reserve_sequences,
        )
        self._streams.append(stream)
        return stream

    def finish(self, stream: ProducerStream) -> None:
        """Wait until nothing is outstanding, at most for the flush timeout, then close the stream."""
        deadline_ns = self.clock.monotonic_ns() + int(self.settings.flush_timeout_s * 1e9)
        try:
            while stream.outstanding and self.clock.monotonic_ns() < deadline_ns:
                gevent.sleep(0.005)  # outcomes come by callbacks, which need the loop
            if self.settings.acks == "0":
                gevent.sleep(UNANSWERED_S)
        finally:
            stream.close()

    @property
    def is_to_be_read_back(self) -> bool:
        """Whether this load is all of a standalone load. Of a distributed one each process has a part only."""
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
        """Locust is about to write its reports: what was kept for the next merge belongs into them."""
        self._statistics.merge()

    def close_reader(self, reader: RecordReader) -> None:
        """Close a consumer; one that takes too long is left to the process's end."""
        with gevent.Timeout(DISPOSE_TIMEOUT_S, False):
            begin_waiting(reader.is_cooperative, reader.close).get()

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
        """Something went wrong that the load does not provide for (a full disk, a mistake of ours).

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
            gevent.joinall(self._disposals, timeout=2 * DISPOSE_TIMEOUT_S)
        finally:
            gevent.killall(self._greenlets)
            self.recorder.close()
            logger.info("history closed: %s", self.recorder)

    def _close_at_exit(self) -> None:
        """The last resort, after an exception somewhere in Locust: no hub, no threads, only the records."""
        if self._closed:
            return
        self._closed = True
        self._dispose = lambda client: None  # type: ignore[method-assign]
        try:
            for stream in self._streams:
                stream.close()
        finally:
            self.recorder.close()

    def _dispose(self, client: ProducerClient) -> None:
        self._disposals = [task for task in self._disposals if not task.ready()]
        self._disposals.append(begin_waiting(client.is_cooperative, lambda: client.dispose(DISPOSE_TIMEOUT_S)))

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
            late_ns = self.clock.monotonic_ns() - before_ns - int(TICK_INTERVAL_S * 1e9)
            self.recorder.tally.loop_lag(max(0.0, late_ns / 1e6))
            try:
                self.recorder.tick()
                self._statistics.merge_if_due()
                self._master.tell(self.told)
            except Exception as error:
                self.fail(error)

    def __repr__(self) -> str:
        return f"LoadProcess({self.process}, streams={len(self._streams)}, stopping={self.stopping})"


_started: list[LoadProcess] = []


def this_process() -> LoadProcess:
    """The load process that users belong to. Raises ``SettingsError`` if it did not start."""
    if not _started:
        raise SettingsError("the load process did not start; see the log above")
    return _started[0]


def fail_process(error: BaseException) -> None:
    """Locust's ``user_error``: an exception that a user let out."""
    for process in _started:
        process.fail(error)


def has_started() -> bool:
    """Whether there is a load process: false until the cluster has answered."""
    return bool(_started)


def start_process(environment: Any, producers: int) -> None:
    """Locust's ``test_start``: resolve the settings, find or make the topic, open the history, take the signals.

    Ends the process with a clear line if that cannot be done. A second start (web UI) continues with the first's.
    """
    runner = environment.runner
    if isinstance(runner, MasterRunner) or _started:
        return
    worker_index = runner.worker_index if isinstance(runner, WorkerRunner) else None
    try:
        options = resolve_options(environment.parsed_options, worker_index, producers)
        settings = options.settings
        bootstrap = checked_host(environment.host or settings.producers_bootstrap or settings.readers_bootstrap)
        check_client_config(options.settings)
        begun = Beginning(options)
        if not is_conducted(environment.parsed_options):
            begun = in_thread(partial(begin, bootstrap, options, environment.parsed_options, runner))
        process = LoadProcess(environment, begun)
    except (SettingsError, OSError) as error:
        logger.critical("%s", error)
        raise SystemExit(254) from error
    for client, key in left_out(options.settings):
        logger.info("%s has no %s; it is left out", client, key)
    _started.append(process)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Python's own handlers, not gevent's: they replace Locust's, whose SIGTERM would stop everything a second
        # time; and a KeyboardInterrupt could come up in the middle of a write. All they do is to start a greenlet.
        signal.signal(number, lambda *_: gevent.spawn(process.stop))
    logger.info("run %d records into %s", options.settings.run_id, options.run.path)


def settle_process() -> None:
    """Locust's ``quitting``: the users have stopped, the reports come next."""
    for process in _started:
        process.settle_statistics()


def fail_process_unless_written(environment: Any) -> None:
    """Locust's ``quitting`` of a standalone load, where producers were started: was anything written, and if not,
    why."""
    for process in _started:
        told, topic = process.told, process.settings.topic
        bootstrap = environment.host or process.settings.producers_bootstrap
        if process.users_number and not told.has_written and told.cause is None:
            told = WrittenState(False, in_thread(partial(why_not_written, bootstrap, topic)))
        if process.users_number:
            fail_unless_written(environment, told, f"topic {topic} at {bootstrap}")


def end_process() -> None:
    """Locust's ``quit``: everything that users left is closed, the history last; a standalone load is read back."""
    for process in _started:
        process.close()
        if process.is_to_be_read_back:
            read_back(process.run.path)
