"""The settings of a load: what is written and read, how fast, with which client configuration. Owns their file form.

The conductor writes one JSON file for all load processes of a run (its path goes in ``LOCUST_KAFKA_SETTINGS``); a
user who starts Standalone Locust gives ``--kafka-*`` options instead (``loadgen.users.options``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from loadgen.choices import Keys, KeySpec, Sizes, SizeSpec, parse_keys, parse_sizes
from loadgen.group_plan import MembersSpec, parse_members
from loadgen.kinds import (
    STREAMS,
    TRANSACTIONAL,
    PlanSpec,
    TransactionPlan,
    check_kind,
    check_streams,
    least_processes,
    parse_plan,
    streams_per_user,
)
from loadgen.shapes import RateShape, ShapeSpec, parse_shape
from loadgen.spec import SpecError
from verifier.evidence.run_directory import read_json, write_json_atomic

SETTINGS_ENV = "LOCUST_KAFKA_SETTINGS"
PROCESS_ENV = "LOCUST_KAFKA_PROCESS"
RUN_DIRECTORY_ENV = "LOCUST_KAFKA_RUN_DIRECTORY"

ConfigValue = str | int | float | bool

PRODUCERS = "producers"
READERS = "readers"

#: The clients of producers and readers: librdkafka through confluent-kafka, or gapless's own.
CONFLUENT, NATIVE = "confluent", "native"
CLIENTS = (NATIVE, CONFLUENT)
#: A further client for the final phase. It blocks, so Locust's greenlets cannot use it.
KAFKA_PYTHON = "kafka-python"
FINAL_CLIENTS = (CONFLUENT, KAFKA_PYTHON, NATIVE)
#: Two different clients, so that one shows if the other skips records or delivers them twice.
DEFAULT_READERS = (CONFLUENT, NATIVE)
DEFAULT_FINAL_READERS = (CONFLUENT, KAFKA_PYTHON)

ISOLATION, READ_COMMITTED = "isolation.level", "read_committed"

#: Configuration keys that only the load can set -> why.
_OWN_KEYS = {
    "bootstrap.servers": "the load sets its own addresses",
    "client.id": "each of the load's clients has a name of its own",
    "transactional.id": "each of a transactional workload's producers has its own, and others have none",
}


class SettingsError(ValueError):
    """The settings cannot be used; the message says what to change."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """One load. Raises ``SettingsError`` for invalid values.

    ``rate`` is the total number of records per second, divided evenly among the producer users, and changed by
    ``shape``. With ``outstanding`` above 0, there is no rate: each producer sends as fast as records are acknowledged,
    with at most this many unacknowledged. ``value_bytes`` is the size of a value including its header, or a
    distribution of sizes. ``producer_config`` and ``consumer_config`` have keys of the client, on top of the defaults
    of its adapter in ``loadgen.clients``. Stream ``i`` writes to partition ``i % partitions``. ``producers`` is the
    number of streams, which are divided among ``processes`` processes. Each producer user writes one stream, unless
    ``kind`` says otherwise (``loadgen.kinds``, which also owns the form of ``transactions``). ``readers`` has the
    client of each live reader, ``final_readers`` those of the final phase. With ``isolated``, readers get only
    committed records, except the live readers with the client ``uncommitted_reader``.
    """

    run_id: int
    producers_bootstrap: str = ""
    readers_bootstrap: str = ""
    topic: str = "gapless-load"
    partitions: int = 4
    replication_factor: int = -1  # the broker's default; used only to create the topic
    create_topic: bool = False
    topic_config: dict[str, str] = field(default_factory=dict)
    client: str = CONFLUENT
    rate: float = 1000.0
    outstanding: int = 0
    shape: ShapeSpec = "constant"
    producers: int = 4
    readers: tuple[str, ...] = DEFAULT_READERS
    final_readers: tuple[str, ...] = DEFAULT_FINAL_READERS
    processes: int = 1
    value_bytes: SizeSpec = 200
    keys: KeySpec = "none"
    first_stream: int = 0
    reserve_sequences: int = 4096
    flush_timeout_s: float = 20.0
    members: MembersSpec | None = None
    kind: str = STREAMS
    transactions: PlanSpec | None = None
    isolated: bool = False
    uncommitted_reader: str = ""
    producer_config: dict[str, ConfigValue] = field(default_factory=dict)
    consumer_config: dict[str, ConfigValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (
            ("run_id", 0),
            ("partitions", 1),
            ("producers", 0),
            ("processes", 1),
            ("outstanding", 0),
            ("first_stream", 0),
            ("reserve_sequences", 1),
            ("flush_timeout_s", 0),
        ):
            if getattr(self, name) < least:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if not self.rate > 0:
            raise SettingsError(f"rate is {self.rate}; it must be above 0 records per second")
        if not self.topic:
            raise SettingsError("topic is empty")
        if self.client not in CLIENTS:
            raise SettingsError(f"client is {self.client!r}; use one of {', '.join(CLIENTS)}")
        for name, known in (("readers", CLIENTS), ("final_readers", FINAL_CLIENTS)):
            if unknown := [client for client in getattr(self, name) if client not in known]:
                raise SettingsError(f"{name} has {unknown[0]!r}; use one of {', '.join(known)}")
        try:
            parse_shape(self.shape), parse_sizes(self.value_bytes), parse_keys(self.keys)
            if self.members is not None:
                parse_members(self.members)
            check_kind(self.kind, self.transactions)
            check_streams(self.kind, self.transactions, self.producers, self.partitions)
        except SpecError as error:
            raise SettingsError(str(error)) from error

    @property
    def rate_shape(self) -> RateShape:
        """How the rate changes."""
        return parse_shape(self.shape)

    @property
    def sizes(self) -> Sizes:
        """The sizes of values."""
        return parse_sizes(self.value_bytes)

    @property
    def key_choice(self) -> Keys:
        """The keys of records."""
        return parse_keys(self.keys)

    @property
    def acks(self) -> str:
        """``"all"``, ``"1"`` or ``"0"`` as the producer will use it."""
        value = str(self.producer_config.get("acks", self.producer_config.get("request.required.acks", "all")))
        return "all" if value == "-1" else value

    @property
    def idempotence(self) -> bool:
        """Whether the producer is idempotent, as it will use it: unless it was asked for, only with acks=all."""
        return str(self.producer_config.get("enable.idempotence", self.acks == "all")).lower() == "true"

    @property
    def rate_per_producer(self) -> float:
        """Records per second of one producer user."""
        return self.rate * self.streams_per_user / max(1, self.producers)

    @property
    def is_transactional(self) -> bool:
        """Whether its producers have a ``transactional.id``."""
        return self.kind in TRANSACTIONAL

    def reads_committed(self, client: str, *, is_final: bool) -> bool:
        """Whether a reader with this client gets only committed records.

        If they are ``isolated``, all are, but the live readers of ``uncommitted_reader``.
        """
        if (asked := self.consumer_config.get(ISOLATION)) is not None:
            return asked == READ_COMMITTED
        return self.isolated and (is_final or client != self.uncommitted_reader)

    @property
    def streams_per_user(self) -> int:
        """How many streams one producer user writes."""
        return streams_per_user(self.kind, self.transactions)

    @property
    def producer_processes(self) -> int:
        """How many processes the producers share."""
        return min(max(self.processes, least_processes(self.kind, self.transactions)), self.users)

    @property
    def users(self) -> int:
        """How many producer users there are."""
        return self.producers // self.streams_per_user

    @property
    def transaction_plan(self) -> TransactionPlan:
        """What its producers do in each transaction."""
        return parse_plan(self.kind, self.transactions)

    def with_changes(self, changes: Mapping[str, Any]) -> LoadSettings:
        """A copy with some fields changed. Raises ``SettingsError``, also for an unknown field."""
        unknown = set(changes) - {each.name for each in fields(self)}
        if unknown:
            raise SettingsError(f"unknown load settings: {', '.join(sorted(unknown))}")
        return replace(self, **changes)

    def write(self, path: Path) -> None:
        """Write the settings file. Raises ``OSError``."""
        write_json_atomic(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> LoadSettings:
        """Read a settings file. Raises ``SettingsError``."""
        try:
            values = read_json(Path(path))
        except (OSError, ValueError) as error:
            raise SettingsError(f"cannot read the load settings {path}: {error}") from error
        known = {each.name for each in fields(cls)}
        if unknown := set(values) - known:
            raise SettingsError(f"{path}: unknown load settings: {', '.join(sorted(unknown))}")
        values |= {name: tuple(values[name]) for name in ("readers", "final_readers") if name in values}
        try:
            return cls(**values)
        except TypeError as error:
            raise SettingsError(f"{path}: {error}") from error


def uncommitted_reader(readers: Sequence[str]) -> str:
    """The client whose live readers also get aborted records: the first one, if there are several; else ""."""
    return readers[0] if len(set(readers)) > 1 else ""


def refuse_own_keys(option: str, config: Mapping[str, object]) -> None:
    """Raises SettingsError for keys that the load would ignore or cannot use. ``option`` is where they were given."""
    for key, reason in _OWN_KEYS.items():
        if key in config:
            raise SettingsError(f"{option} {key}={config[key]}: {reason}; leave it out")


def parse_config(pairs: list[str]) -> dict[str, ConfigValue]:
    """``["acks=all", ...]`` as a mapping. Raises ``SettingsError`` for an entry without ``=``."""
    config: dict[str, ConfigValue] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise SettingsError(f"{pair!r} is not KEY=VALUE")
        config[key.strip()] = value.strip()
    return config
