"""The ``--kafka-*`` options that extend Locust's command line, each with a ``LOCUST_KAFKA_*`` variable.

Owns their names and help. Does not own what they resolve to (``loadgen.users.options``). Some are also fields of
Locust's web form (``loadgen.users.form``). The form sends texts, with an empty one for "not given", so all values stay
texts until they become settings.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NoReturn

from cluster.process.invocation import command
from loadgen.durations import seconds_of
from loadgen.settings import PROCESS_ENV, RUN_DIRECTORY_ENV, SETTINGS_ENV
from loadgen.tool import BAD_ARGUMENTS


def _duration(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _text_of(kind: Callable[[str], Any]) -> Callable[[str], str]:
    """A type for argparse that checks a text with ``kind``, and keeps it a text."""

    def checked(text: str) -> str:
        kind(text)
        return text

    # argparse and the page of options show this name
    checked.__name__ = kind.__name__
    return checked


#: option -> (field of LoadSettings, type, help)
FIELDS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "--kafka-topic": ("topic", str, "topic to write and read; created if absent (gapless-load)"),
    "--kafka-partitions": ("partitions", int, "partitions of a topic that is created (4)"),
    "--kafka-replication-factor": (
        "replication_factor",
        int,
        "replication factor of a topic that is created (the broker's default)",
    ),
    "--kafka-rate": ("rate", float, "total records per second, shared by the producer users (1000)"),
    "--kafka-value-bytes": ("value_bytes", int, "size of a value in bytes, including its 48-byte header (200)"),
    "--kafka-client": ("client", str, "the client: native or confluent (confluent)"),
    "--kafka-readers": (
        "readers",
        str,
        "number of users that read (1; 0 if there is only one user), or the client of each: native,confluent",
    ),
    "--kafka-run-id": ("run_id", int, "number that marks this run's values (random)"),
    "--kafka-first-stream": ("first_stream", int, "number of the first producer's stream (0)"),
    "--kafka-flush-timeout": ("flush_timeout_s", _duration, "how long producers may take to finish at the end (20s)"),
}


#: The options in the web form. The others are decided before a form can be sent.
FORM = (
    "kafka_topic", "kafka_partitions", "kafka_replication_factor", "kafka_rate", "kafka_value_bytes", "kafka_client",
    "kafka_flush_timeout", "kafka_workload", "kafka_producer_config", "kafka_consumer_config",
)  # fmt: skip


def destination(option: str) -> str:
    """The name of an option's value in argparse's namespace."""
    return option.removeprefix("--").replace("-", "_")


def refuse_as_we_do(parser: Any) -> None:
    """Make Locust's parser end like gapless for bad options: with one line and 254, as its 2 would read as unknown.

    An abbreviated option is bad, too: what it means could change with each new option.
    """

    def error(message: str) -> NoReturn:
        what, unknown, rest = message.partition("unrecognized arguments: ")
        if unknown:
            known = [each for action in parser._actions for each in action.option_strings]
            near = get_close_matches(rest.split()[0], known, n=1)
            what = f"unknown option {rest}{f'; did you mean {near[0]}?' if near else ''}"
        sys.stderr.write(f"gapless load: {what} (see '{command(['load', '--options'])}')\n")
        raise SystemExit(BAD_ARGUMENTS)

    parser.error = error
    parser.allow_abbrev = False


def add_options(parser: Any) -> None:
    """Add the ``--kafka-*`` options to Locust's parser (an ``argparse.ArgumentParser`` with environment variables)."""
    group = parser.add_argument_group("Kafka load (gapless)")
    actions = [
        group.add_argument(
            option,
            type=_text_of(kind) if destination(option) in FORM else kind,
            default=None,
            env_var=f"LOCUST_KAFKA_{name.upper()}",
            help=text,
        )
        for option, (name, kind, text) in FIELDS.items()
    ]
    workload = group.add_argument(
        "--kafka-workload",
        default=None,
        metavar="NAME|FILE",
        env_var="LOCUST_KAFKA_WORKLOAD",
        help="what to write and how fast: a name (see 'gapless list workloads') or a YAML file",
    )
    configs = [
        group.add_argument(
            f"--kafka-{role}-config",
            action="append",
            default=None,
            metavar="KEY=VALUE",
            env_var=f"LOCUST_KAFKA_{role.upper()}_CONFIG",
            help="any setting, as KEY=VALUE (repeatable; separated by commas on the form)",
        )
        for role in ("producer", "consumer")
    ]
    for action in (*actions, workload, *configs):
        # Locust sets this itself only for options outside of groups; without it, the form would not show the option
        action.include_in_web_ui = action.dest in FORM
        action.is_secret = action.is_required = action.is_multiple = False
    group.add_argument(
        "--kafka-settings",
        default=None,
        metavar="FILE",
        env_var=SETTINGS_ENV,
        help="JSON file of settings, such as the loadgen/settings.json of a load or run",
    )
    group.add_argument("--kafka-process", default=None, env_var=PROCESS_ENV, help="name of this process's history")
    group.add_argument(
        "--kafka-run-directory", default=None, env_var=RUN_DIRECTORY_ENV, help="existing directory of the run"
    )
    group.add_argument(
        "--kafka-read-back",
        default="yes",
        choices=("yes", "no"),
        metavar="yes|no",
        env_var="LOCUST_KAFKA_READ_BACK",
        help="whether to read everything back at the end, for gapless verify (yes)",
    )
    group.add_argument(
        "--kafka-results", default="results", help="where to create a run directory if none is given (results)"
    )


def print_all() -> None:
    """Print all options. With ``--help``, Locust does not load the locustfile, and so shows only its own options."""
    from locust.argument_parser import get_parser

    parser: Any = get_parser(default_config_files=[])
    for action in parser._actions:
        if "--host" in action.option_strings:
            action.help = "bootstrap servers of the cluster, HOST:PORT[,HOST:PORT]"
    add_options(parser)
    parser.print_help()


if __name__ == "__main__":
    print_all()
