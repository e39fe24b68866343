"""``gapless run``: the options of one experiment. Owns their names and help; the work is the conductor's."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from chaos.commands import options
from chaos.commands.session import conduct
from chaos.conductor.record_size import check_record_size
from chaos.conductor.resolve import Asked, plan, repro, resolve
from chaos.exits import VERDICTS, BadRequest, Exit
from chaos.schedules.model import Schedule, ScheduleError, from_yaml
from cluster.seams.randomness import fresh_seed
from loadgen.documents import DocumentError, read_text


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", help=HELP)(run)


HELP = """Break one cluster and judge it: start, load, break by a seeded schedule, heal, read everything, verify.

Ends with a RESULT line, the report's path and a repro line on stdout. Exit status: 0 valid, 1 invalid, 2 unknown,
254 bad arguments, 255 the harness itself failed.
"""


def run(
    time_limit: options.TimeLimit = 60.0,
    seed: options.Seed = None,
    faults: options.Faults = None,
    overlap: options.Overlap = False,
    schedule: options.Schedule = None,
    defect: options.Defect = None,
    toxiproxy: options.Toxiproxy = None,
    acks: options.AcksOption = None,
    idempotence: options.Idempotence = None,
    workload: options.Workload = None,
    rate: options.Rate = None,
    users: options.Users = None,
    record_bytes: options.RecordBytes = None,
    load_processes: options.LoadProcesses = 1,
    client: options.Client = "confluent",
    producer_config: options.ProducerConfig = None,
    consumer_config: options.ConsumerConfig = None,
    brokers: options.Brokers = 3,
    partitions: options.Partitions = None,
    replication_factor: options.ReplicationFactor = 3,
    min_insync_replicas: options.MinInsyncReplicas = None,
    profile: options.Profile = "chaos",
    broker_config: options.BrokerConfig = None,
    topic_config: options.TopicConfig = None,
    zookeeper: options.Zookeeper = None,
    name: options.Name = "run",
    out: options.Out = None,
    keep: options.KeepOption = options.Keep.FAILED,
    spark_master: options.SparkMaster = "local[2]",
    web: options.Web = False,
    web_port: options.WebPort = None,
    as_json: options.AsJson = False,
) -> int:
    """Resolve the options, then conduct the run."""
    asked = Asked(
        seed=fresh_seed() if seed is None else seed,
        name=name,
        out=out,
        time_limit_s=time_limit,
        brokers=brokers,
        partitions=partitions,
        replication_factor=replication_factor,
        min_insync_replicas=min_insync_replicas,
        acks=None if acks is None else acks.value,
        idempotence=None if idempotence is None else idempotence is options.Truth.TRUE,
        workload=workload,
        rate=rate,
        users=users,
        record_bytes=record_bytes,
        load_processes=load_processes,
        client=client,
        faults=faults,
        overlap=overlap,
        schedule=None if schedule is None else _schedule(schedule),
        defects=tuple(defect or ()),
        profile=profile,
        broker_config=tuple(broker_config or ()),
        topic_config=tuple(topic_config or ()),
        producer_config=tuple(producer_config or ()),
        consumer_config=tuple(consumer_config or ()),
        zookeeper=zookeeper,
        toxiproxy=toxiproxy,
        spark_master=spark_master,
        keep=keep.value,
        web_port=0 if web and web_port is None else web_port,
    )
    return _run(asked, schedule, as_json=as_json)


def _run(asked: Asked, schedule: Path | None, *, as_json: bool) -> int:
    try:
        settings, warnings = resolve(asked)
        warnings += check_record_size(asked, settings)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    verdict = conduct(settings, plan(settings), warnings, _repro(asked, schedule), as_json=as_json)
    return int(VERDICTS.get(verdict, Exit.HARNESS_FAILED))


def _schedule(path: Path) -> Schedule:
    try:
        return from_yaml(read_text(path))
    except (DocumentError, ScheduleError) as error:
        raise BadRequest(f"--schedule {path}: {error}") from error


def _repro(asked: Asked, schedule: Path | None) -> str:
    """The command that asks for the same run."""
    return shlex.join([".venv/bin/gapless", *command_line(asked, schedule)])


def command_line(asked: Asked, schedule: Path | None) -> list[str]:
    """The arguments that ask for this run; only what differs from the defaults, and always the seed.

    Where it is written and what is kept of it are not of the run.
    """
    plain = Asked(seed=asked.seed)
    options: dict[str, object] = {"--seed": asked.seed}
    for option, field in (
        ("--name", "name"),
        ("--time-limit", "time_limit_s"),
        ("--brokers", "brokers"),
        ("--partitions", "partitions"),
        ("--replication-factor", "replication_factor"),
        ("--min-insync-replicas", "min_insync_replicas"),
        ("--acks", "acks"),
        ("--workload", "workload"),
        ("--rate", "rate"),
        ("--users", "users"),
        ("--record-bytes", "record_bytes"),
        ("--load-processes", "load_processes"),
        ("--client", "client"),
        ("--faults", "faults"),
        ("--profile", "profile"),
        ("--zookeeper", "zookeeper"),
        ("--toxiproxy", "toxiproxy"),
    ):
        value = getattr(asked, field)
        options[option] = None if value == getattr(plain, field) else value
    options["--idempotence"] = None if asked.idempotence is None else str(asked.idempotence).lower()
    options["--schedule"] = schedule
    multiple = {
        "--defect": asked.defects,
        "--broker-config": asked.broker_config,
        "--topic-config": asked.topic_config,
        "--producer-config": asked.producer_config,
        "--consumer-config": asked.consumer_config,
    }
    flags = ["--overlap"] if asked.overlap else []
    return [*repro(options, multiple), *flags]
