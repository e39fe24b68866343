"""The settings of a load: what is written and read, how fast, with which client configuration. Owns their file form.

The conductor writes one JSON file for all load processes of a run (its path goes in ``LOCUST_KAFKA_SETTINGS``); a
user who starts Locust by hand gives ``--kafka-*`` options instead (``loadgen.users.options``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from verifier.evidence.run_directory import read_json, write_json_atomic
from verifier.evidence.values import HEADER_BYTES

SETTINGS_ENV = "LOCUST_KAFKA_SETTINGS"
PROCESS_ENV = "LOCUST_KAFKA_PROCESS"
RUN_DIRECTORY_ENV = "LOCUST_KAFKA_RUN_DIRECTORY"

ConfigValue = str | int | float | bool

PRODUCERS = "producers"
READERS = "readers"


class SettingsError(ValueError):
    """The settings cannot be used; the message says what to change."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """One load. Raises ``SettingsError`` for values that make no sense.

    ``rate`` is records per second in all, shared evenly by the producer users. ``value_bytes`` is the size of a
    value, header included. ``producer_config`` and ``consumer_config`` are Kafka's keys (or librdkafka's own), on
    top of ``loadgen.clients.librdkafka``'s defaults. Stream ``i`` writes to partition ``i % partitions``.
    """

    run_id: int
    producers_bootstrap: str = ""
    readers_bootstrap: str = ""
    topic: str = "gapless-load"
    partitions: int = 4
    replication_factor: int = -1  # the broker's default; used only to create the topic
    create_topic: bool = False
    topic_config: dict[str, str] = field(default_factory=dict)
    rate: float = 1000.0
    producers: int = 4
    readers: int = 1
    value_bytes: int = 200
    first_stream: int = 0
    reserve_sequences: int = 4096
    flush_timeout_s: float = 20.0
    producer_config: dict[str, ConfigValue] = field(default_factory=dict)
    consumer_config: dict[str, ConfigValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (
            ("run_id", 0),
            ("partitions", 1),
            ("producers", 0),
            ("readers", 0),
            ("value_bytes", HEADER_BYTES),
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

    @property
    def acks(self) -> str:
        """``"all"``, ``"1"`` or ``"0"`` as the producer will use it."""
        value = str(self.producer_config.get("acks", self.producer_config.get("request.required.acks", "all")))
        return "all" if value == "-1" else value

    @property
    def rate_per_producer(self) -> float:
        """Records per second of one producer user."""
        return self.rate / max(1, self.producers)

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
        try:
            return cls(**values)
        except TypeError as error:
            raise SettingsError(f"{path}: {error}") from error


def parse_config(pairs: list[str]) -> dict[str, ConfigValue]:
    """``["acks=all", ...]`` as a mapping. Raises ``SettingsError`` for an entry without ``=``."""
    config: dict[str, ConfigValue] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise SettingsError(f"{pair!r} is not KEY=VALUE")
        config[key.strip()] = value.strip()
    return config
