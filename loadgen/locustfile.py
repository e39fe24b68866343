"""The locustfile: ``locust -f loadgen/locustfile.py --host BOOTSTRAP``. Owns the wiring to Locust's events.

Without options it writes to and reads from topic ``gapless-load`` (created if absent) and records into a new directory
under ``results/locust``. The conductor starts it once for the producers and once for the readers (``loadgen.command``).
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

# Locust has put the working directory on sys.path. Other users may be able to write there, so nothing is imported from
# it. If PYTHONPATH also names it, it is on sys.path twice, and one entry stays. This file's own directory is in front
# until Locust removes it.
if os.getcwd() in sys.path:
    sys.path.remove(os.getcwd())
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from locust import events
from locust.runners import MasterRunner, WorkerRunner

from loadgen.hosts import checked_host
from loadgen.settings import SettingsError
from loadgen.users.beginning import count_from_now, leave_out_until
from loadgen.users.command_line import add_options, refuse_as_we_do
from loadgen.users.form import refuse_bad_forms
from loadgen.users.load import LocustLoad
from loadgen.users.member import MemberUser
from loadgen.users.options import (
    DEFAULT_PRODUCERS,
    MEMBER_CLASSES,
    is_conducted,
    members_left_out,
    producer_count,
    reader_count,
    settle_options,
)
from loadgen.users.producer import ProducerUser
from loadgen.users.reader import ReaderUser
from loadgen.users.transformer import TransformerUser
from loadgen.users.web import show_chaos
from loadgen.users.whole_csv import keep_requests, write_whole_csv
from verifier.evidence.run_directory import RunDirectory

__all__ = ["MemberUser", "ProducerUser", "ReaderUser", "TransformerUser"]

logger = logging.getLogger(__name__)


def on_command_line(parser: Any, **_: Any) -> None:
    add_options(parser)
    refuse_as_we_do(parser)


def on_init(environment: Any, **_: Any) -> None:
    """Before Locust chooses users: decide how many of them read, and settle the options that were left open."""
    options = environment.parsed_options
    if len(environment.user_classes) > 1:
        # in a run, members have their own processes
        environment.user_classes[:] = [each for each in environment.user_classes if each.__name__ not in MEMBER_CLASSES]
    load = LocustLoad(environment)
    leave_out_until(lambda: load.has_started or isinstance(environment.runner, MasterRunner))
    _follow(environment, load)
    if environment.web_ui is not None and is_conducted(options):
        show_chaos(environment, RunDirectory(Path(options.kafka_run_directory)))
    is_worker = isinstance(environment.runner, WorkerRunner)
    try:
        if environment.host:
            checked_host(environment.host)
        if not is_worker:
            settle_options(options)
            if (left_out := members_left_out(options, options.user_classes or ())) is not None:
                logger.warning("%s", left_out)
        ReaderUser.fixed_count = readers = _readers(environment)
        if ProducerUser in environment.user_classes and not is_worker:
            producers = producer_count(options, options.num_users, readers)
        else:
            producers = DEFAULT_PRODUCERS
    except SettingsError as error:
        logger.critical("%s", error)
        raise SystemExit(254) from error
    if not readers and ReaderUser in environment.user_classes:
        # for Locust, a fixed count of 0 means no fixed count, so half of all users would read
        environment.user_classes.remove(ReaderUser)
    if environment.web_ui is not None and not is_conducted(options):
        refuse_bad_forms(environment, readers, lambda: load.has_started)
    if options.num_users is None:
        options.num_users = producers + readers
        options.spawn_rate = options.spawn_rate or options.num_users
    count_from_now()


def _follow(environment: Any, load: LocustLoad) -> None:
    """Connect the load to Locust's events."""
    locust_events = environment.events
    locust_events.test_start.add_listener(lambda **_: _on_test_start(environment, load))
    locust_events.user_error.add_listener(lambda exception, **_: load.fail(exception))
    locust_events.quitting.add_listener(lambda **_: _on_quitting(environment, load))
    locust_events.quit.add_listener(lambda **_: load.end())


def _on_test_start(environment: Any, load: LocustLoad) -> None:
    if not isinstance(environment.runner, WorkerRunner):
        # workers get the master's options except Locust's own, and the web form may have changed those
        environment.parsed_options.kafka_users = environment.runner.target_user_count
        environment.parsed_options.kafka_workers = environment.runner.worker_count
    load.start(max(1, _producers(environment)))


def _on_quitting(environment: Any, load: LocustLoad) -> None:
    """Report a load that wrote nothing, or that ended before its cluster answered: it has shown nothing."""
    load.settle()
    if not isinstance(environment.runner, MasterRunner):
        # workers may still report requests
        keep_requests()
    options, runner = environment.parsed_options, environment.runner
    if load.never_began:
        environment.process_exit_code = environment.process_exit_code or 254
    elif is_conducted(options) or load.is_awaited:
        return
    elif not isinstance(runner, MasterRunner):
        load.fail_unless_written()
    elif ProducerUser in environment.user_classes and _producers(environment) > 0:
        load.fail_unless_workers_wrote()


def _producers(environment: Any) -> int:
    """The number of users that write (that do not read), in all processes."""
    return (_users(environment) or 1) - _readers(environment)


def _users(environment: Any) -> int | None:
    """The number of users in all processes; None if it is not decided yet."""
    options = environment.parsed_options
    users: int | None = getattr(options, "kafka_users", None) or options.num_users
    return users


def _readers(environment: Any) -> int:
    options, classes = environment.parsed_options, environment.user_classes
    if ReaderUser not in classes:
        return 0
    return reader_count(options.kafka_readers, _users(environment), alone=ProducerUser not in classes)


# before the conductor kills a process that does not end, this signal makes it log what its threads are doing
faulthandler.register(signal.SIGUSR2)
write_whole_csv()
events.init_command_line_parser.add_listener(on_command_line)
events.init.add_listener(on_init)
