"""What one experiment is asked to do. Owns the value and the checks between its parts; knows no command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.schedules.model import Schedule
from loadgen.settings import CLIENTS, DEFAULT_FINAL_READERS, DEFAULT_READERS, FINAL_CLIENTS
from loadgen.workload import Workload


class SettingsError(ValueError):
    """The settings contradict each other or cannot be had; the message names the thing and the fix."""


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """Everything that decides a run, after profiles and shorthands are resolved.

    The four ``*_config`` mappings hold Kafka's own keys, profile included. ``workload`` says all that its options
    say. ``schedule`` is None if it is to be generated from ``faults`` and ``seed``. ``web_port`` is None without a web
    interface, 0 for a free port.
    """

    seed: int
    name: str = "run"
    out: str | None = None
    time_limit_s: float = 60.0
    warmup_s: float = 4.0
    brokers: int = 3
    partitions: int = 6
    replication_factor: int = 3
    min_insync_replicas: int = 2
    acks: str = "all"
    idempotence: bool = True
    workload: Workload = field(default_factory=lambda: Workload("steady", rate=1500))
    users: int = 6
    readers: tuple[str, ...] = DEFAULT_READERS
    final_readers: tuple[str, ...] = DEFAULT_FINAL_READERS
    load_processes: int = 1
    client: str = "confluent"
    faults: tuple[str, ...] = ()
    overlap: bool = False
    schedule: Schedule | None = None
    defects: tuple[str, ...] = ()
    profile: str = "chaos"
    broker_config: Mapping[str, str] = field(default_factory=dict)
    topic_config: Mapping[str, str] = field(default_factory=dict)
    producer_config: Mapping[str, str] = field(default_factory=dict)
    consumer_config: Mapping[str, str] = field(default_factory=dict)
    zookeeper: str | None = None
    toxiproxy: str | None = None
    spark_master: str = "local[2]"
    keep: str = "failed"
    web_port: int | None = None

    @property
    def topic(self) -> str:
        """The one topic of the workload."""
        return "gapless"

    def expected_disk_bytes(self) -> int:
        """A bound on what the run writes: every record on each replica, the histories, and Spark's scratch."""
        records = self.workload.expected_records(self.time_limit_s + 30)
        return int(records * ((self.workload.mean_bytes + 80) * self.replication_factor + 200)) + 200_000_000


def check(settings: ExperimentSettings) -> None:
    """Raises SettingsError on the first contradiction."""
    for label, value in (
        ("--brokers", settings.brokers),
        ("--partitions", settings.partitions),
        ("--replication-factor", settings.replication_factor),
        ("--min-insync-replicas", settings.min_insync_replicas),
        ("--users", settings.users),
        ("--load-processes", settings.load_processes),
    ):
        if value < 1:
            raise SettingsError(f"{label} must be at least 1, not {value}")
    if not settings.warmup_s < settings.time_limit_s < math.inf:
        raise SettingsError(
            f"--time-limit must be longer than the warm-up of {settings.warmup_s:g} s and end, "
            f"not {settings.time_limit_s:g}"
        )
    if settings.replication_factor > settings.brokers:
        raise SettingsError(
            f"--replication-factor {settings.replication_factor} needs as many brokers; "
            f"there are {settings.brokers}: raise --brokers or lower the factor"
        )
    if settings.min_insync_replicas > settings.replication_factor:
        raise SettingsError(
            f"--min-insync-replicas {settings.min_insync_replicas} can never be met "
            f"with --replication-factor {settings.replication_factor}"
        )
    if settings.idempotence and settings.acks != "all":
        raise SettingsError(f"--idempotence true needs --acks all, not --acks {settings.acks}")
    if "/" in settings.name or settings.name in ("", ".", "..", "latest"):
        raise SettingsError(
            f"--name {settings.name!r} cannot be a directory of its own in results/; choose another word"
        )
    if settings.load_processes > settings.users:
        raise SettingsError(
            f"--load-processes {settings.load_processes} need as many producers; there are {settings.users}: "
            "raise --users or lower the processes"
        )
    for option, clients, known in (
        ("--readers", settings.readers, CLIENTS),
        ("--final-readers", settings.final_readers, FINAL_CLIENTS),
    ):
        if not clients or (unknown := [client for client in clients if client not in known]):
            raise SettingsError(
                f"{option} has {unknown[0]!r}; there are {', '.join(known)}"
                if clients
                else f"{option} is empty; name at least one of {', '.join(known)}"
            )
        if len(set(clients)) < len(clients):
            raise SettingsError(f"{option} {','.join(clients)} names a client twice; name each once")
    if settings.faults and settings.schedule is not None:
        raise SettingsError("--schedule and --faults exclude each other: a schedule names its faults")
