"""Locust's command line, extended: ``--kafka-*`` options, each with a ``LOCUST_KAFKA_*`` variable. Owns names, help.

The conductor passes a settings file; by hand the options do. An option that is given outranks the file. Those that make
sense there are fields of Locust's web form too (``loadgen.users.form``), which sends texts, and an empty one for "not
given": they stay texts until they are settings.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from cluster.seams.clock import SystemClock
from cluster.seams.randomness import fresh_seed
from loadgen.durations import seconds_of
from loadgen.limits import LargestRecord, advice, producer_limits
from loadgen.settings import (
    CLIENTS,
    CONFLUENT,
    PROCESS_ENV,
    RUN_DIRECTORY_ENV,
    SETTINGS_ENV,
    LoadSettings,
    SettingsError,
    parse_config,
    refuse_own_keys,
)
from loadgen.tool import BAD_ARGUMENTS
from loadgen.workload import Workload, WorkloadError
from loadgen.workloads import find_workload
from verifier.evidence.run_directory import RunDirectory

DEFAULT_PRODUCERS = 4


def _duration(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _text_of(kind: Callable[[str], Any]) -> Callable[[str], str]:
    """A type of argparse's that looks at a text and leaves it one."""

    def checked(text: str) -> str:
        kind(text)
        return text

    # argparse and the page of options name it
    checked.__name__ = kind.__name__
    return checked


#: option -> (field of LoadSettings, type, help)
_FIELDS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "--kafka-topic": ("topic", str, "topic to write and read; created if absent (gapless-load)"),
    "--kafka-partitions": ("partitions", int, "partitions of a topic that is created (4)"),
    "--kafka-replication-factor": ("replication_factor", int, "replicas of a topic that is created (the broker's)"),
    "--kafka-rate": ("rate", float, "records per second in all, shared by the producer users (1000)"),
    "--kafka-value-bytes": ("value_bytes", int, "size of a value, its 48-byte header included (200)"),
    "--kafka-client": ("client", str, "the client: native or confluent (confluent)"),
    "--kafka-readers": (
        "readers",
        str,
        "how many of the users read (1; none if there is one user), or the client of each: native,confluent",
    ),
    "--kafka-run-id": ("run_id", int, "number that marks this run's values (random)"),
    "--kafka-first-stream": ("first_stream", int, "number of the first producer's stream (0)"),
    "--kafka-flush-timeout": ("flush_timeout_s", _duration, "how long producers may take to finish at the end (20s)"),
}


#: Fields of the web form. The others are settled before a form can be sent.
FORM = (
    "kafka_topic", "kafka_partitions", "kafka_replication_factor", "kafka_rate", "kafka_value_bytes", "kafka_client",
    "kafka_flush_timeout", "kafka_workload", "kafka_producer_config", "kafka_consumer_config",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResolvedOptions:
    """What one load process works with."""

    settings: LoadSettings
    run: RunDirectory
    process: str


def refuse_as_we_do(parser: Any) -> None:
    """Let Locust's parser end as we do for bad options: with one line and our status; its 2 would read as unknown."""

    def error(message: str) -> NoReturn:
        what, unknown, rest = message.partition("unrecognized arguments: ")
        if unknown:
            known = [each for action in parser._actions for each in action.option_strings]
            near = get_close_matches(rest.split()[0], known, n=1)
            what = f"there is no option {rest}{f'; did you mean {near[0]}?' if near else ''}"
        sys.stderr.write(f"gapless load: {what} (see 'gapless load --options')\n")
        raise SystemExit(BAD_ARGUMENTS)

    parser.error = error


def add_options(parser: Any) -> None:
    """Add our options to Locust's parser (an ``argparse.ArgumentParser`` that knows environment variables)."""
    group = parser.add_argument_group("Kafka load (gapless)")
    actions = [
        group.add_argument(
            option,
            type=_text_of(kind) if _destination(option) in FORM else kind,
            default=None,
            env_var=f"LOCUST_KAFKA_{name.upper()}",
            help=text,
        )
        for option, (name, kind, text) in _FIELDS.items()
    ]
    workload = group.add_argument(
        "--kafka-workload",
        default=None,
        metavar="NAME|FILE",
        env_var="LOCUST_KAFKA_WORKLOAD",
        help="what is written and how fast: a name (gapless list workloads) or a YAML file",
    )
    configs = [
        group.add_argument(
            f"--kafka-{role}-config",
            action="append",
            default=None,
            metavar="KEY=VALUE",
            env_var=f"LOCUST_KAFKA_{role.upper()}_CONFIG",
            help="any setting, as KEY=VALUE (repeatable; on the form: commas)",
        )
        for role in ("producer", "consumer")
    ]
    for action in (*actions, workload, *configs):
        # What Locust's parser notes of an option of its own; one of a group would be on no form.
        action.include_in_web_ui = action.dest in FORM
        action.is_secret = action.is_required = action.is_multiple = False
    group.add_argument("--kafka-settings", default=None, env_var=SETTINGS_ENV, help="settings as a JSON file")
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
        help="whether all that was written is read back at the end, for gapless verify (yes)",
    )
    group.add_argument("--kafka-results", default="results", help="where a run directory is made otherwise (results)")


def reader_count(asked: str | None, users: int | None, *, alone: bool) -> int:
    """How many users read: what was asked for, else one. A single user writes, unless there are readers alone.

    Raises ``SettingsError``.
    """
    if asked is not None:
        return len(reader_clients(asked, CONFLUENT))
    return 0 if users == 1 and not alone else 1


def reader_clients(asked: str, client: str) -> tuple[str, ...]:
    """The client of each reader: as they are named, or so many of ``client``. Raises ``SettingsError``."""
    if asked.isascii() and asked.isdecimal():
        return (client,) * int(asked)
    clients = tuple(name.strip() for name in asked.split(","))
    if unknown := [name for name in clients if name not in CLIENTS]:
        raise SettingsError(
            f"--kafka-readers {asked}: {unknown[0]!r} is neither a number nor a client; there are {', '.join(CLIENTS)}"
        )
    return clients


def producer_count(options: Any, users: int | None, readers: int) -> int:
    """How many users write, after ``settle_options``: what ``--users`` leaves beside the readers, or the workload says.

    Raises ``WorkloadError`` if these say different things.
    """
    streams = _workload(vars(options)).streams if options.kafka_workload else None
    if users is None:
        return streams or DEFAULT_PRODUCERS
    if streams not in (None, users - readers):
        raise WorkloadError(
            f"--users {users}, {readers} of which read, contradicts streams {streams} of workload "
            f"{options.kafka_workload}; leave it out, or give --users {streams + readers}"
        )
    return users - readers


def settle_options(options: Any) -> None:
    """Choose what was left open, once for all of Locust's processes: the master's choice is handed to its workers.

    Raises ``SettingsError`` if the settings cannot be used, or the run directory not be made.
    """
    if options.kafka_settings is None and options.kafka_run_id is None:
        options.kafka_run_id = fresh_seed()
    if options.kafka_workload:
        # as it was read: a worker's host need not have the file
        options.kafka_workload_read = [options.kafka_workload, asdict(find_workload(options.kafka_workload))]
    _settings(options, DEFAULT_PRODUCERS)
    if options.kafka_run_directory is None:
        now = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
        try:
            run = RunDirectory.create(options.kafka_results, "locust", options.kafka_run_id or 0, now)
        except OSError as error:
            raise SettingsError(f"no run directory: {error}; choose another place by --kafka-results") from error
        options.kafka_run_directory = str(run.path)


def check_options(options: Any) -> None:
    """Whether a load can be started with these. Raises ``SettingsError``."""
    _settings(options, DEFAULT_PRODUCERS)


def resolve_options(options: Any, worker_index: int | None, producers: int) -> ResolvedOptions:
    """Settings, run directory and process name, after ``settle_options``.

    ``worker_index`` is None unless Locust is distributed. ``producers`` is the number of producer users of a load by
    hand. Raises ``SettingsError``.
    """
    settings = _settings(options, producers)
    process = options.kafka_process or "load"
    if worker_index is not None:
        process = f"{process}-w{worker_index}"
        # streams are unique in the run: each worker numbers its own
        settings = settings.with_changes({"first_stream": settings.first_stream + (worker_index << 16)})
    try:
        run = RunDirectory(Path(options.kafka_run_directory)).prepare()
    except OSError as error:
        raise SettingsError(f"no run directory: {error}") from error
    return ResolvedOptions(settings, run, process)


def _settings(options: Any, producers: int) -> LoadSettings:
    """What file and options say together. Raises ``SettingsError``, also for records that the client would not take."""
    changes = _changes(vars(options))
    asked = changes.pop("readers", None)
    if options.kafka_settings is None:
        settings = _made({"producers": producers, "create_topic": True, **changes}, options)
        asked = asked or "1"
    else:
        settings = LoadSettings.read(options.kafka_settings).with_changes(changes)
    if asked is not None:
        settings = settings.with_changes({"readers": reader_clients(asked, settings.client)})
    largest = LargestRecord.of(settings.sizes, settings.key_choice)
    limits = producer_limits(settings.client, settings.producer_config, largest)
    if (refusal := advice(source_of_sizes(options, settings), limits, largest, "--kafka-{}-config")) is not None:
        raise SettingsError(refusal)
    return settings


def _made(values: dict[str, Any], options: Any) -> LoadSettings:
    """The settings. Raises ``SettingsError``, which names the option whose value cannot be."""
    try:
        return LoadSettings(**values)
    except SettingsError as error:
        for option, (name, _, _) in _FIELDS.items():
            given = getattr(options, option.removeprefix("--").replace("-", "_"))
            if given is not None and name in values and not _is_possible(name, values[name]):
                raise SettingsError(f"{option} {given}: {error}") from error
        raise


def _is_possible(name: str, value: Any) -> bool:
    try:
        LoadSettings(**{"run_id": 0, name: value})
    except SettingsError:
        return False
    return True


def source_of_sizes(options: Any, settings: LoadSettings) -> str:
    """What says how large values are."""
    if options.kafka_workload:
        return f"--kafka-workload {options.kafka_workload}"
    if not options.kafka_value_bytes and options.kafka_settings is not None:
        return f"--kafka-settings {options.kafka_settings}"
    return f"--kafka-value-bytes {settings.value_bytes}"


def _destination(option: str) -> str:
    """The name of an option's value, as argparse has it."""
    return option.removeprefix("--").replace("-", "_")


def _changes(values: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for option, (name, kind, _) in _FIELDS.items():
        value = values.get(_destination(option))
        if value in (None, ""):
            continue
        try:
            changes[name] = kind(value) if isinstance(value, str) else value
        except ArgumentTypeError as error:
            raise SettingsError(f"{option} {value}: {error}") from error
        except ValueError as error:
            raise SettingsError(f"{option} {value}: not a {'whole ' if kind is int else ''}number") from error
    for role in ("producer", "consumer"):
        pairs = values.get(f"kafka_{role}_config")
        if pairs:
            # a text is that of the web form
            each = [pair.strip() for pair in pairs.split(",")] if isinstance(pairs, str) else pairs
            changes[f"{role}_config"] = config = parse_config(each)
            refuse_own_keys(f"--kafka-{role}-config", config)
    if values.get("kafka_workload"):
        changes |= _of_workload(_workload(values), changes)
    return changes


def _workload(values: Mapping[str, Any]) -> Workload:
    """The workload as the master read it, or as it is to be had here. Raises WorkloadError."""
    text, read = values.get("kafka_workload_read") or (None, {})
    return Workload(**read) if text == values["kafka_workload"] else find_workload(values["kafka_workload"])


def _of_workload(workload: Workload, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a workload and the options beside it say together. Raises WorkloadError where they contradict each other.

    The number of streams is for Locust's ``--users`` (``producer_count``).
    """
    options = {
        "rate": ("--kafka-rate", changes.get("rate")),
        "value_bytes": ("--kafka-value-bytes", changes.get("value_bytes")),
        "partitions": ("--kafka-partitions", changes.get("partitions")),
    }
    whole = workload.with_options(options)
    producer, codec = dict(changes.get("producer_config", {})), whole.compression
    if codec is not None and producer.setdefault("compression.type", codec) != codec:
        raise WorkloadError(
            f"--kafka-producer-config compression.type={producer['compression.type']} contradicts compression "
            f"{codec} of workload {whole.name}; leave one of them out"
        )
    placed = {"partitions": whole.partitions} if whole.partitions else {}
    return {**whole.load_fields(), **placed, **({"producer_config": producer} if producer else {})}
