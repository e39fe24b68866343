"""From what was asked to the settings of a run. Owns how profiles, shorthands and ``--*-config`` come together. Pure.

The general ``--broker-config KEY=VALUE`` and its sisters win over the profile; a shorthand (``--acks``) that says
something else than they do is a contradiction, and refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.conductor.settings import ExperimentSettings, SettingsError, check
from chaos.faults.catalogue import DEFAULT, FAULTS, check_faults, parse_faults
from chaos.schedules.generator import generate
from chaos.schedules.model import Schedule
from cluster.config import broker, consumer, producer, profiles, topic
from loadgen.settings import CLIENTS, refuse_own_keys
from loadgen.workload import Workload
from loadgen.workloads import find_workload

#: Healing, the last read and the copies of the evidence come after the time limit, and a burst of retries with them.
AFTER_THE_LOAD_MS = 1_800_000
DEFAULT_WORKLOAD = "steady"
DEFAULT_RATE = 1500
DEFAULT_PARTITIONS = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of ``gapless run`` as given; None where nothing was said."""

    seed: int
    name: str = "run"
    out: str | None = None
    time_limit_s: float = 60.0
    brokers: int = 3
    partitions: int | None = None
    replication_factor: int = 3
    min_insync_replicas: int | None = None
    acks: str | None = None
    idempotence: bool | None = None
    workload: str | None = None
    rate: int | None = None
    users: int | None = None
    record_bytes: int | None = None
    load_processes: int = 1
    client: str = "confluent"
    faults: str | None = None
    overlap: bool = False
    schedule: Schedule | None = None
    defects: Sequence[str] = ()
    profile: str = "chaos"
    broker_config: Sequence[str] = ()
    topic_config: Sequence[str] = ()
    producer_config: Sequence[str] = ()
    consumer_config: Sequence[str] = ()
    zookeeper: str | None = None
    toxiproxy: str | None = None
    spark_master: str = "local[2]"
    keep: str = "failed"
    web_port: int | None = None


def resolve(asked: Asked) -> tuple[ExperimentSettings, list[str]]:
    """The settings, and warnings for a person. Raises SettingsError, ConfigError, UnknownFault."""
    if asked.client not in CLIENTS:
        choices = " or ".join(f"--client {client}" for client in CLIENTS)
        raise SettingsError(f"--client {asked.client} is not known; use {choices}")
    if asked.faults is not None and asked.schedule is not None:
        raise SettingsError("--schedule and --faults exclude each other: a schedule names its faults")
    if asked.overlap and asked.schedule is not None:
        raise SettingsError("--schedule and --overlap exclude each other: a schedule says what overlaps")
    profile = profiles.find(asked.profile)
    minimum = 2 if asked.replication_factor > 2 else 1
    broker_text = {**profile.broker, **_pairs("--broker-config", asked.broker_config)}
    asked_topic = _pairs("--topic-config", asked.topic_config)
    topic_text = _with("--min-insync-replicas", "min.insync.replicas", asked.min_insync_replicas, asked_topic)
    topic_text = {"min.insync.replicas": str(minimum), **profile.topic, **topic_text}
    workload = _workload(asked)
    producer_text = _producer_text(asked, workload)
    typed_broker = broker.validate(broker_text)
    typed_topic = topic.validate(topic_text, typed_broker)
    typed_producer = producer.validate(producer_text, asked.client, profile.producer_base(asked.client))
    consumer_text = _pairs("--consumer-config", asked.consumer_config)
    refuse_own_keys("--producer-config", producer_text)
    refuse_own_keys("--consumer-config", consumer_text)
    typed_consumer = consumer.validate(consumer_text, asked.client, profile.consumer_base(asked.client))
    defects = _defects(asked.defects)
    faults = () if asked.schedule is not None else parse_faults(asked.faults or DEFAULT)
    if asked.schedule is not None:
        check_faults(asked.schedule.kinds())
    settings = ExperimentSettings(
        seed=asked.seed,
        name=asked.name,
        out=asked.out,
        time_limit_s=asked.time_limit_s,
        brokers=asked.brokers,
        partitions=workload.partitions or DEFAULT_PARTITIONS,
        replication_factor=asked.replication_factor,
        min_insync_replicas=int(typed_topic["min.insync.replicas"]),
        acks={"-1": "all"}.get(str(typed_producer["acks"]), str(typed_producer["acks"])),
        idempotence=bool(typed_producer["enable.idempotence"]),
        workload=workload,
        users=workload.streams or workload.partitions or DEFAULT_PARTITIONS,
        load_processes=asked.load_processes,
        client=asked.client,
        faults=faults,
        overlap=asked.overlap,
        schedule=asked.schedule,
        defects=defects,
        profile=asked.profile,
        broker_config=typed_broker.as_text(),
        topic_config=typed_topic.as_text(),
        producer_config=typed_producer.as_text(),
        consumer_config=typed_consumer.as_text(),
        zookeeper=asked.zookeeper,
        toxiproxy=asked.toxiproxy,
        spark_master=asked.spark_master,
        keep=asked.keep,
        web_port=asked.web_port,
    )
    check(settings)
    _check_that_all_is_kept(typed_topic, settings.time_limit_s)
    warnings = [*typed_broker.warnings, *typed_topic.warnings, *typed_producer.warnings, *typed_consumer.warnings]
    return settings, warnings


def _check_that_all_is_kept(config: topic.TopicConfig, time_limit_s: float) -> None:
    """A run whose topic loses records as it goes would prove nothing, an hour later. Raises SettingsError."""
    if "compact" in str(config["cleanup.policy"]):
        raise SettingsError(
            "the final read needs every record, and compaction removes some: 'cleanup.policy' must be delete"
        )
    needed_ms = int(time_limit_s * 1000) + AFTER_THE_LOAD_MS
    if 0 <= int(config["retention.ms"]) < needed_ms:
        raise SettingsError(
            f"the final read needs every record: 'retention.ms' {config['retention.ms']} is less than this run may "
            f"take ({needed_ms}); leave it out"
        )
    if int(config["retention.bytes"]) >= 0:
        raise SettingsError("the final read needs every record: leave out 'retention.bytes'; --rate sets the disk")


def plan(settings: ExperimentSettings) -> Schedule:
    """The schedule of a run: the one given, or one generated from the seed."""
    if settings.schedule is not None:
        return settings.schedule
    return generate(
        [FAULTS[name].kind() for name in settings.faults],
        seed=settings.seed,
        warmup_s=settings.warmup_s,
        time_limit_s=settings.time_limit_s,
        partitions=settings.partitions,
        overlap=settings.overlap,
    )


def _defects(texts: Sequence[str]) -> tuple[str, ...]:
    """The same in full spelling. Raises ``DefectError``. Knowing them takes the broker's code; few runs have any."""
    if not texts:
        return ()
    from cluster.defects import parse

    return tuple(str(parse(text)) for text in texts)


def _workload(asked: Asked) -> Workload:
    """The workload with what the options say. Raises WorkloadError where they say something else."""
    return find_workload(asked.workload or DEFAULT_WORKLOAD).with_options(
        {
            "rate": ("--rate", asked.rate),
            "value_bytes": ("--record-bytes", asked.record_bytes),
            "partitions": ("--partitions", asked.partitions),
            "streams": ("--users", asked.users),
        },
        {"rate": DEFAULT_RATE},
    )


def _producer_text(asked: Asked, workload: Workload) -> dict[str, str]:
    text = _pairs("--producer-config", asked.producer_config)
    text = _with(f"workload {workload.name}'s compression", "compression.type", workload.compression, text)
    text = _with("--acks", "acks", asked.acks, text)
    if asked.idempotence is None:
        return text
    return _with("--idempotence", "enable.idempotence", str(asked.idempotence).lower(), text)


def _with(option: str, key: str, value: object, mapping: Mapping[str, str]) -> dict[str, str]:
    """``mapping`` with the shorthand's value in it. Raises SettingsError if they say different things."""
    if value is None:
        return dict(mapping)
    if mapping.get(key, str(value)) != str(value):
        raise SettingsError(f"{option} {value} contradicts {key}={mapping[key]}; leave one of them out")
    return {**mapping, key: str(value)}


def _pairs(option: str, pairs: Sequence[str]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise SettingsError(f"{option} wants KEY=VALUE, not {pair!r}")
        mapping[key.strip()] = value.strip()
    return mapping


def repro(options: Mapping[str, object], multiple: Mapping[str, Sequence[str]]) -> list[str]:
    """The argument list that asks for the same run again; options that are None are left out."""
    words = ["run"]
    for name, value in options.items():
        if value is not None:
            words += [name, str(value)]
    for name, values in multiple.items():
        for value in values:
            words += [name, value]
    return words
