"""The common part of the final phase's two command-line tools: their arguments, their clients and their output.

Plain processes without gevent: the load has ended when they run. One JSON object on stdout, logs on stderr.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cluster.process.one_line import log_to
from cluster.seams.clock import Clock
from loadgen.clients.base import ReaderFactory, SenderFactory
from loadgen.clients.choice import reader
from loadgen.settings import CONFLUENT, LoadSettings, SettingsError

#: Exit status: all done; not all done; bad arguments.
DONE, INCOMPLETE, BAD_ARGUMENTS = 0, 1, 254


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """The arguments that both tools take."""

    settings: LoadSettings
    bootstrap: str
    history: Path
    process: str
    deadline_s: float
    client: str


class _ToolParser(argparse.ArgumentParser):
    """Bad arguments end with the project's status for them, not with 2, which would read as "unknown"."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(BAD_ARGUMENTS, f"{self.prog}: {message}\n")


def parser(program: str, description: str, clients: Sequence[str]) -> argparse.ArgumentParser:
    """A parser with the shared arguments; the first of ``clients`` is the default."""
    arguments = _ToolParser(prog=f"python -m {program}", description=description)
    arguments.add_argument("--settings", required=True, metavar="FILE", help="the load's settings, as JSON")
    arguments.add_argument("--bootstrap", required=True, metavar="HOST:PORT[,...]")
    arguments.add_argument("--history", required=True, metavar="FILE.arrow", help="where to record; replaced")
    arguments.add_argument("--deadline-s", type=float, default=60.0, help="give up after this many seconds (60)")
    arguments.add_argument("--client", choices=clients, default=clients[0])
    return arguments


def resolve(parsed: argparse.Namespace) -> ToolArguments:
    """The arguments with the load's settings. Raises ``SettingsError``."""
    history = Path(parsed.history)
    if not history.parent.is_dir():
        raise SettingsError(f"there is no directory {history.parent} for the history")
    settings = LoadSettings.read(parsed.settings)
    return ToolArguments(settings, parsed.bootstrap, history, history.stem, parsed.deadline_s, parsed.client)


def sender_factory(arguments: ToolArguments, clock: Clock) -> SenderFactory:
    """Makes one fresh acks=all producer per call."""
    bootstrap, process, given = arguments.bootstrap, arguments.process, arguments.settings.producer_config
    if arguments.client == CONFLUENT:
        from loadgen.clients.confluent import ConfluentSentinelSender

        return lambda: ConfluentSentinelSender(bootstrap, process, given, clock)
    from loadgen.clients.kafka_python import KafkaPythonSentinelSender

    return lambda: KafkaPythonSentinelSender(bootstrap, process, given, clock)


def reader_factory(arguments: ToolArguments) -> ReaderFactory:
    """Makes a fresh consumer; no offset of it is ever reset."""
    return lambda: reader(
        arguments.client,
        arguments.bootstrap,
        arguments.process,
        arguments.settings,
        is_committed=reads_committed(arguments),
    )


def reads_committed(arguments: ToolArguments) -> bool:
    """Whether the final reader gets only committed records."""
    return arguments.settings.reads_committed(arguments.client, is_final=True)


def start_logging() -> None:
    log_to(logging.StreamHandler(sys.stderr))


def put_result(result: Mapping[str, Any]) -> None:
    """Print the result on stdout, as one JSON object."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
