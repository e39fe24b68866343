"""Resolves options into an experiment. Owns how profiles, shorthands and ``--*-config`` are combined. Pure.

``--broker-config KEY=VALUE`` and the other ``--*-config`` options override the profile. A shorthand (``--acks``) that
contradicts them is refused. Does not declare options (``asked``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos.experiment.asked import Asked
from chaos.experiment.choices import DEFAULT_PARTITIONS, DEFAULT_RATE, DEFAULT_WORKLOAD, OWN_BROKER_KEYS
from chaos.experiment.declaration import check_declared
from chaos.experiment.drawn import Drawn
from chaos.experiment.errors import ExperimentError
from chaos.experiment.experiment import WARMUP_S, Experiment, check
from chaos.experiment.in_use import consumer_in_use, producer_in_use
from chaos.experiment.planned import check_schedule, faults_of
from chaos.experiment.swarmed import base_of, drawn_for, over
from chaos.experiment.target_options import check_target, check_workload
from chaos.faults.catalogue import FAULTS
from chaos.schedules.generator import generate
from chaos.schedules.model import Schedule
from chaos.schedules.swarm import lay_out
from chaos.schedules.swarms import SWARMS
from cluster.config import broker, consumer, producer, profiles, topic
from cluster.config.errors import ConfigError
from cluster.seams.units import ms_of_seconds
from loadgen.clients.transaction_keys import check_transactional, defaults
from loadgen.kinds import check_streams
from loadgen.settings import CLIENTS, ISOLATION, refuse_own_keys
from loadgen.spec import SpecError
from loadgen.workload import Workload
from loadgen.workloads import find_workload
from verifier.evidence.run_model import DefectSetting

#: An upper bound for what follows the load: healing, retries, the final read, and copying the evidence.
AFTER_THE_LOAD_MS = 1_800_000
#: A load that is longer than its limit by at least this factor is worth a line.
WORTH_SAYING = 1.1


def resolve(asked: Asked) -> tuple[Experiment, list[str]]:
    """Resolve the options; returns the experiment, and warnings for the user.

    Raises ExperimentError, ConfigError or UnknownFault.
    """
    _check_what_excludes(asked)
    check_declared(asked, ExperimentError)
    check_target(asked)
    profile = base_of(asked)
    workload = _workload(asked)
    check_workload(asked, workload)
    given, drawn = asked, drawn_for(asked, workload)
    asked = asked if drawn is None else over(drawn, asked)
    broker_text = _pairs("--broker-config", asked.broker_config)
    _refuse_the_runs_own(broker_text)
    typed_broker = broker.validate({**profile.broker, **broker_text})
    typed_topic = topic.validate(_topic_text(asked, profile), typed_broker)
    producer_text = _producer_text(asked, workload)
    typed_producer = _producer(asked, workload, profile, producer_text)
    consumer_text = _pairs("--consumer-config", asked.consumer_config)
    refuse_own_keys("--producer-config", producer_text)
    refuse_own_keys("--consumer-config", consumer_text)
    typed_consumer = consumer.validate(consumer_text, asked.client, _consumer_base(asked, workload, profile))
    defects, planted = _defects(asked.defects)
    partitions = workload.partitions or DEFAULT_PARTITIONS
    users = workload.streams or partitions
    _check_streams(workload, users, partitions)
    faults, left_out = _faults(asked, workload, drawn)
    experiment = Experiment(
        asked=given,
        drawn=drawn,
        workload=workload,
        partitions=partitions,
        users=users,
        faults=faults,
        defects=defects,
        planted=planted,
        broker_config=typed_broker,
        topic_config=typed_topic,
        producer_config=typed_producer,
        consumer_config=typed_consumer,
        producer_in_use=producer_in_use(asked.client, typed_producer),
        consumer_in_use=consumer_in_use(asked.client, typed_consumer),
    )
    check(experiment)
    check_schedule(experiment)
    _check_that_all_is_kept(typed_topic, asked.time_limit_s)
    return experiment, [*left_out, *experiment.warnings]


def _faults(asked: Asked, workload: Workload, drawn: Drawn | None) -> tuple[tuple[str, ...], list[str]]:
    """The kinds of faults to generate a schedule from, none if one was given; and lines about kinds left out."""
    if asked.schedule is not None:
        return (), []
    return faults_of(asked, workload) if drawn is None else (drawn.faults.kinds, [])


def _check_what_excludes(asked: Asked) -> None:
    """Raises ExperimentError for an unknown client, and for mutually exclusive options."""
    if asked.client not in CLIENTS:
        choices = " or ".join(f"--client {client}" for client in CLIENTS)
        raise ExperimentError(f"--client {asked.client} is not known; use {choices}")
    if asked.faults is not None and asked.schedule is not None:
        raise ExperimentError("--schedule and --faults are mutually exclusive: a schedule names its faults")
    if asked.overlap and asked.schedule is not None:
        raise ExperimentError("--schedule and --overlap are mutually exclusive: a schedule says what overlaps")


def _refuse_the_runs_own(broker_text: Mapping[str, str]) -> None:
    """Raises ExperimentError for a key that gapless sets on each broker, because the user's value would be ignored."""
    for key, value in broker_text.items():
        if key in OWN_BROKER_KEYS:
            raise ExperimentError(
                f"--broker-config {key}={value}: gapless sets {key} of every broker; leave it out"
                + OWN_BROKER_KEYS[key]
            )


def _topic_text(asked: Asked, profile: profiles.Profile) -> dict[str, str]:
    minimum = 2 if asked.replication_factor > 2 else 1
    asked_topic = _pairs("--topic-config", asked.topic_config)
    topic_text = _with("--min-insync-replicas", "min.insync.replicas", asked.min_insync_replicas, asked_topic)
    return {"min.insync.replicas": str(minimum), **profile.topic, **topic_text}


def _check_that_all_is_kept(config: topic.TopicConfig, time_limit_s: float) -> None:
    """Raises ExperimentError if the topic would delete records during the run, which would make the run useless."""
    if "compact" in config["cleanup.policy"]:
        raise ExperimentError(
            "the final read needs every record, and compaction removes some: 'cleanup.policy' must be delete"
        )
    needed_ms = int(ms_of_seconds(time_limit_s)) + AFTER_THE_LOAD_MS
    if 0 <= config["retention.ms"] < needed_ms:
        raise ExperimentError(
            f"the final read needs every record: 'retention.ms' {config['retention.ms']} is less than this run may "
            f"take ({needed_ms}); leave it out"
        )
    if config["retention.bytes"] >= 0:
        raise ExperimentError(
            "the final read needs every record: leave out 'retention.bytes'; use --rate to limit the disk space"
        )


def plan(experiment: Experiment) -> Schedule:
    """The schedule of a run: the given one, with the run's seed if it has none; or one generated from the seed."""
    if experiment.schedule is not None:
        return experiment.schedule.seeded(experiment.asked.seed)
    kinds = [FAULTS[name].kind() for name in experiment.faults]
    if experiment.drawn is not None:
        return lay_out(
            experiment.drawn.faults,
            kinds,
            SWARMS[experiment.drawn.faults.swarm].limits,
            seed=experiment.asked.seed,
            warmup_s=WARMUP_S,
            time_limit_s=experiment.asked.time_limit_s,
            partitions=experiment.partitions,
            replicas=experiment.asked.replication_factor,
        )
    return generate(
        kinds,
        seed=experiment.asked.seed,
        warmup_s=WARMUP_S,
        time_limit_s=experiment.asked.time_limit_s,
        partitions=experiment.partitions,
        overlap=experiment.asked.overlap,
    )


def load_seconds(experiment: Experiment, schedule: Schedule) -> float:
    """The planned duration of the load in seconds: the time limit, or longer if the faults do not fit into it."""
    ends_s = (each.at_s + each.duration_s + FAULTS[each.fault].recovery_s for each in schedule.injections)
    return max(experiment.asked.time_limit_s, *ends_s, 0.0)


def overrun(experiment: Experiment, schedule: Schedule) -> list[str]:
    """A line if the load will last longer than the time limit; none if that is less than a tenth longer."""
    asked, needed_s = experiment.asked, load_seconds(experiment, schedule)
    if needed_s < WORTH_SAYING * asked.time_limit_s:
        return []
    count, fewer = len(schedule.injections), "--faults" if asked.schedule is None else "--schedule"
    need = f"{count} faults need it" if count > 1 else "the fault needs it"
    return [
        f"the load will last about {needed_s:.0f} s, not the {asked.time_limit_s:g} s of --time-limit: {need}; "
        f"ask for fewer with {fewer}"
    ]


def _defects(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[DefectSetting, ...]]:
    """The defects in full spelling, for the brokers, and typed. Raises ``DefectError`` or ExperimentError.

    Imports the broker's code only if there are any, since few runs have defects.
    """
    if not texts:
        return (), ()
    from cluster.defects import parse

    specs = [parse(text) for text in texts]
    names = [spec.name for spec in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ExperimentError(f"--defect {twice[0]} is given twice; leave one of them out")
    return tuple(map(str, specs)), tuple(DefectSetting(spec.name, spec.probability) for spec in specs)


def _workload(asked: Asked) -> Workload:
    """The workload with the options that change it. Raises WorkloadError if an option contradicts it."""
    return find_workload(asked.workload or DEFAULT_WORKLOAD).with_options(
        {
            "rate": ("--rate", asked.rate),
            "value_bytes": ("--record-bytes", asked.record_bytes),
            "partitions": ("--partitions", asked.partitions),
            "streams": ("--users", asked.users),
        },
        {"rate": DEFAULT_RATE},
    )


def _check_streams(workload: Workload, streams: int, partitions: int) -> None:
    """Raises ExperimentError if the streams cannot be divided among producers and partitions."""
    try:
        check_streams(workload.kind, workload.transactions, streams, partitions)
    except SpecError as error:
        raise ExperimentError(f"workload {workload.name}: {error}") from error


def _producer(
    asked: Asked, workload: Workload, profile: profiles.Profile, text: Mapping[str, str]
) -> producer.ProducerConfig:
    """The producers' typed configuration. Raises ConfigError or ExperimentError.

    Transactional producers have other defaults, and must meet the requirements of ``transactional.id``.
    """
    base = profile.producer_base(asked.client)
    if not workload.is_transactional:
        return producer.validate(text, asked.client, base)
    base = {**base, **{key: str(value) for key, value in defaults(asked.client).items()}}
    try:
        producer.validate({**text, "transactional.id": "of its own"}, asked.client, base)
    except ConfigError as error:
        raise ExperimentError(f"workload {workload.name} has transactional producers: {error}") from error
    typed = producer.validate(text, asked.client, base)
    check_transactional(asked.client, dict(typed.as_text()))
    return typed


def _consumer_base(asked: Asked, workload: Workload, profile: profiles.Profile) -> Mapping[str, object]:
    """The defaults for readers. With transactions, without the isolation level: each reader has its own."""
    base = profile.consumer_base(asked.client)
    return {key: value for key, value in base.items() if not (workload.is_transactional and key == ISOLATION)}


def _producer_text(asked: Asked, workload: Workload) -> dict[str, str]:
    text = _pairs("--producer-config", asked.producer_config)
    text = _with(f"workload {workload.name}'s compression", "compression.type", workload.compression, text)
    text = _with("--acks", "acks", asked.acks, text)
    if asked.idempotence is None:
        return text
    return _with("--idempotence", "enable.idempotence", str(asked.idempotence).lower(), text)


def _with(option: str, key: str, value: object, mapping: Mapping[str, str]) -> dict[str, str]:
    """``mapping`` with the value of a shorthand option added. Raises ExperimentError if both contradict each other."""
    if value is None:
        return dict(mapping)
    if mapping.get(key, str(value)) != str(value):
        raise ExperimentError(f"{option} {value} contradicts {key}={mapping[key]}; leave one of them out")
    return {**mapping, key: str(value)}


def _pairs(option: str, pairs: Sequence[str]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise ExperimentError(f"{option} takes KEY=VALUE, not {pair!r}")
        mapping[key.strip()] = value.strip()
    return mapping
