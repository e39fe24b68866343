"""The load of one Locust process, from Locust's init to its quit. Owns the reaction to each of Locust's events.

Does not own what users share while it runs (``loadgen.users.process``), or which users exist (the locustfile). Users
find it through Locust's environment.
"""

from __future__ import annotations

import logging
import signal
from functools import partial
from typing import Any

import gevent
from locust.runners import MasterRunner, WorkerRunner

from loadgen.clients.choice import check_client_config, left_out
from loadgen.hosts import checked_host
from loadgen.settings import SettingsError
from loadgen.topics import why_not_written
from loadgen.unwritten import WrittenState
from loadgen.users.exit_status import Workers, fail_unless_written
from loadgen.users.options import is_conducted, resolve_options
from loadgen.users.process import LoadProcess
from loadgen.users.standalone_load import Beginning, begin, read_back
from loadgen.users.threads import in_thread

logger = logging.getLogger(__name__)


class LocustLoad:
    """The part of the load in this process: nothing at first, then all of it, a worker's part, or a master's part."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self._process: LoadProcess | None = None
        self._workers = Workers()
        self._workers.listen(environment.runner)
        self._was_asked_for = False
        environment.gapless_load = self

    @property
    def has_started(self) -> bool:
        """Whether there is a load process: false until the cluster has answered, and always false for a master."""
        return self._process is not None

    @property
    def is_awaited(self) -> bool:
        """Whether the load has not begun, and must be started by a master or in the web interface."""
        environment = self._environment
        waits_for_a_click = environment.web_ui is not None and not environment.parsed_options.autostart
        waits = waits_for_a_click or isinstance(environment.runner, MasterRunner | WorkerRunner)
        return waits and not self._was_asked_for

    @property
    def never_began(self) -> bool:
        """Whether the load should have begun in this process, but its cluster has not answered."""
        is_masters = isinstance(self._environment.runner, MasterRunner)
        return not is_masters and not self.has_started and not self.is_awaited

    @property
    def process(self) -> LoadProcess:
        """The ``LoadProcess`` of this process. Raises ``SettingsError`` if the load did not start."""
        if self._process is None:
            raise SettingsError("the load process did not start; see the log above")
        return self._process

    def start(self, producers: int) -> None:
        """Locust's ``test_start``: resolve the settings, find or make the topic, open the history, take the signals.

        Ends the process with a clear line if that cannot be done. A second start (web UI) continues with the first's.
        """
        self._was_asked_for = True
        environment = self._environment
        runner = environment.runner
        if isinstance(runner, MasterRunner) or self._process is not None:
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
        self._process = process
        for number in (signal.SIGINT, signal.SIGTERM):
            # Python's own handlers, not gevent's, because they replace Locust's: its SIGTERM handler would stop
            # everything a second time, and a KeyboardInterrupt could interrupt a write. They only start a greenlet.
            signal.signal(number, lambda *_: gevent.spawn(process.stop))
        logger.info("run %d records into %s", options.settings.run_id, options.run.path)

    def fail(self, error: BaseException) -> None:
        """Locust's ``user_error``: handle an unhandled exception of a user."""
        if self._process is not None:
            self._process.fail(error)

    def settle(self) -> None:
        """Locust's ``quitting``: the users have stopped, the reports come next."""
        if self._process is not None:
            self._process.settle_statistics()

    def fail_unless_written(self) -> None:
        """Locust's ``quitting`` of a standalone load, where producers were started: was anything written, and if not,
        why."""
        process = self._process
        if process is None or not process.users_number:
            return
        told, topic = process.told, process.settings.topic
        bootstrap = self._environment.host or process.settings.producers_bootstrap
        if not told.has_written and told.cause is None:
            told = WrittenState(False, in_thread(partial(why_not_written, bootstrap, topic)))
        fail_unless_written(self._environment, told, f"topic {topic} at {bootstrap}")

    def fail_unless_workers_wrote(self) -> None:
        """The same for a master, from the reports of its workers."""
        host = self._environment.host
        fail_unless_written(self._environment, self._workers.told, f"{host}, as far as the workers reported")

    def end(self) -> None:
        """Locust's ``quit``: everything that users left is closed, the history last; a standalone load is read
        back.

        The last line is the one that helps: how to judge what was written, or why nothing was.
        """
        if self._process is not None:
            self._process.close()
            if self._process.is_to_be_read_back:
                read_back(self._process.run.path)
        elif self.never_began:
            where = self._environment.host
            logger.critical("the load never began: no cluster responded at %s before it ended", where)

    def __repr__(self) -> str:
        return f"LocustLoad({self._process or 'not started'})"


def process_of(environment: Any) -> LoadProcess:
    """The load process of a user's environment. Raises ``SettingsError`` if it did not start."""
    load: LocustLoad = environment.gapless_load
    return load.process
