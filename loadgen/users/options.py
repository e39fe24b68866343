"""Resolves Locust's options into the settings, the run directory and the name of one load process.

The conductor passes a settings file; users of a standalone load give options. An option that is given overrides the
file. Does not own the options themselves (``loadgen.users.command_line``).
"""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.seams.clock import SystemClock
from cluster.seams.randomness import fresh_seed
from cluster.seams.units import seconds_of_ms
from loadgen.kinds import STREAMS, streams_per_user
from loadgen.limits import LargestRecord, advice, producer_limits
from loadgen.settings import (
    CLIENTS,
    CONFLUENT,
    LoadSettings,
    SettingsError,
    parse_config,
    refuse_own_keys,
)
from loadgen.users.command_line import FIELDS, destination
from loadgen.workload import Workload, WorkloadError
from loadgen.workloads import find_workload
from verifier.evidence.run_directory import RunDirectory

DEFAULT_PRODUCERS = 4
#: The user classes that only the conductor starts, in separate processes.
MEMBER_CLASSES = frozenset(("MemberUser", "TransformerUser"))


@dataclass(frozen=True, slots=True)
class ResolvedOptions:
    """The resolved options of one load process."""

    settings: LoadSettings
    run: RunDirectory
    process: str


def reader_count(asked: str | None, users: int | None, *, alone: bool) -> int:
    """How many users read: what was asked for, else one. A single user writes, unless there are readers alone.

    Raises ``SettingsError``.
    """
    if asked is not None:
        return len(reader_clients(asked, CONFLUENT))
    return 0 if users == 1 and not alone else 1


def reader_clients(asked: str, client: str) -> tuple[str, ...]:
    """The client of each reader: ``asked`` has their names, or how many use ``client``. Raises ``SettingsError``."""
    if asked.isascii() and asked.isdecimal():
        return (client,) * int(asked)
    clients = tuple(name.strip() for name in asked.split(","))
    if unknown := [name for name in clients if name not in CLIENTS]:
        raise SettingsError(
            f"--kafka-readers {asked}: {unknown[0]!r} is neither a number nor a client; use one of {', '.join(CLIENTS)}"
        )
    return clients


def producer_count(options: Namespace, users: int | None, readers: int) -> int:
    """How many users write, after ``settle_options``: what ``--users`` leaves beside the readers, workload or file say.

    Raises ``WorkloadError`` if these say different things.
    """
    workload = _workload(vars(options)) if options.kafka_workload else None
    streams = None if workload is None else workload.streams
    writing = None if workload is None or streams is None else streams // workload.streams_per_user
    if users is None:
        return writing or (DEFAULT_PRODUCERS if options.kafka_settings is None else _file(options).users)
    if writing not in (None, users - readers):
        raise WorkloadError(
            f"--users {users}, {readers} of which read, contradicts streams {streams} of workload "
            f"{options.kafka_workload}; leave it out, or give --users {writing + readers}"
        )
    return users - readers


def settle_options(options: Namespace) -> None:
    """Choose what was left open, once for all of Locust's processes: the master's choice is handed to its workers.

    Raises ``SettingsError`` if the settings cannot be used, or the run directory not be made.
    """
    if options.kafka_settings is None and options.kafka_run_id is None:
        options.kafka_run_id = fresh_seed()
    if options.kafka_workload:
        # pass its content on, because the host of a worker may not have the file
        options.kafka_workload_read = [options.kafka_workload, asdict(find_workload(options.kafka_workload))]
    _settings(options, DEFAULT_PRODUCERS)
    if options.kafka_run_directory is None:
        now = datetime.fromtimestamp(seconds_of_ms(SystemClock().wall_ms()), UTC)
        try:
            run = RunDirectory.create(options.kafka_results, "locust", options.kafka_run_id or 0, now)
        except OSError as error:
            raise SettingsError(f"no run directory: {error}; pick another directory with --kafka-results") from error
        options.kafka_run_directory = str(run.path)


def is_conducted(options: Namespace) -> bool:
    """Whether the conductor started this process: it gives all three options, and the settings are in the run."""
    if None in (options.kafka_settings, options.kafka_run_directory, options.kafka_process):
        return False
    own = RunDirectory(Path(options.kafka_run_directory)).load_settings_json
    return Path(options.kafka_settings).resolve() == own.resolve()


def members_left_out(options: Namespace, classes: Iterable[str]) -> str | None:
    """The warning that a standalone load has no members of a consumer group; None if its workload has none either.

    ``classes`` are those that Locust was given by name. Raises ``SettingsError`` if these are members.
    """
    if is_conducted(options):
        return None
    if named := sorted({*classes} & MEMBER_CLASSES):
        raise SettingsError(
            f"{named[0]}: standalone Locust starts no members of consumer groups; use 'gapless run --workload groups'"
        )
    if _settings(options, DEFAULT_PRODUCERS).members is None:
        return None
    source = f"workload {options.kafka_workload}" if options.kafka_workload else options.kafka_settings
    return (
        f"{source} has members of a consumer group, and standalone Locust starts none: they are left out; "
        f"'gapless run --workload {options.kafka_workload or 'groups'}' has them"
    )


def check_options(options: Namespace) -> None:
    """Raises ``SettingsError`` if a load cannot be started with these options."""
    _settings(options, DEFAULT_PRODUCERS)


def resolve_options(options: Namespace, worker_index: int | None, producers: int) -> ResolvedOptions:
    """Settings, run directory and process name, after ``settle_options``.

    ``worker_index`` is None unless Locust is distributed. ``producers`` is the number of producer users of a
    standalone load. Raises ``SettingsError``.
    """
    settings = _settings(options, producers)
    process = options.kafka_process or "load"
    if worker_index is not None:
        process = f"{process}-w{worker_index}"
        # streams must be unique in the run, so each worker has its own range of numbers
        settings = settings.with_changes({"first_stream": settings.first_stream + (worker_index << 16)})
    try:
        run = RunDirectory(Path(options.kafka_run_directory)).prepare()
    except OSError as error:
        raise SettingsError(f"no run directory: {error}") from error
    return ResolvedOptions(settings, run, process)


def _settings(options: Namespace, producers: int) -> LoadSettings:
    """The settings from file and options. Raises ``SettingsError``, also for records that the client would refuse."""
    changes = _changes(vars(options))
    asked = changes.pop("readers", None)
    if options.kafka_settings is None:
        each = streams_per_user(changes.get("kind", STREAMS), changes.get("transactions"))
        settings = _made({"producers": producers * each, "create_topic": True, **changes}, options)
        asked = asked or "1"
    else:
        # in a standalone load, ``--users`` says how many producers share the rate
        own = {} if is_conducted(options) else {"producers": producers * _file(options).streams_per_user}
        settings = _file(options).with_changes({**own, **changes})
    if asked is not None:
        settings = settings.with_changes({"readers": reader_clients(asked, settings.client)})
    largest = LargestRecord.of(settings.sizes, settings.key_choice)
    limits = producer_limits(settings.client, settings.producer_config, largest)
    if (refusal := advice(source_of_sizes(options, settings), limits, largest, "--kafka-{}-config")) is not None:
        raise SettingsError(refusal)
    return settings


def _file(options: Namespace) -> LoadSettings:
    return LoadSettings.read(options.kafka_settings)


def _made(values: dict[str, Any], options: Namespace) -> LoadSettings:
    """The settings with these values. Raises ``SettingsError``, which names the option with the invalid value."""
    try:
        return LoadSettings(**values)
    except SettingsError as error:
        for option, (name, _, _) in FIELDS.items():
            given = getattr(options, destination(option))
            if given is not None and name in values and not _is_possible(name, values[name]):
                raise SettingsError(f"{option} {given}: {error}") from error
        raise


def _is_possible(name: str, value: Any) -> bool:
    try:
        LoadSettings(**{"run_id": 0, name: value})
    except SettingsError:
        return False
    return True


def source_of_sizes(options: Namespace, settings: LoadSettings) -> str:
    """The option or workload that decides the sizes of values, for messages."""
    if options.kafka_workload:
        return f"--kafka-workload {options.kafka_workload}"
    if not options.kafka_value_bytes and options.kafka_settings is not None:
        return f"--kafka-settings {options.kafka_settings}"
    return f"--kafka-value-bytes {settings.value_bytes}"


def _changes(values: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for option, (name, kind, _) in FIELDS.items():
        value = values.get(destination(option))
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
            # a single text comes from the web form
            each = [pair.strip() for pair in pairs.split(",")] if isinstance(pairs, str) else pairs
            changes[f"{role}_config"] = config = parse_config(each)
            refuse_own_keys(f"--kafka-{role}-config", config)
    if values.get("kafka_workload"):
        changes |= _of_workload(_workload(values), changes)
    return changes


def _workload(values: Mapping[str, Any]) -> Workload:
    """The workload that the master has read, or else the one found here. Raises WorkloadError."""
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
