"""The declaration of an experiment: every option of ``gapless run``, once.

To add an option, add it only here: its help, its place in ``repro``, its record in ``run.json`` and its effect on the
verifier's settings follow from its entry. Does not own what options resolve to (``resolve``).
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.experiment.choices import (
    DEFAULT_FAULTS,
    DEFAULT_PARTITIONS,
    DEFAULT_RATE,
    DEFAULT_WORKLOAD,
    FINAL_READERS,
    KAFKA_PYTHON,
    Acks,
    Keep,
)
from chaos.experiment.declaration import Decides, Panel, declared
from chaos.experiment.forms import DURATION, NAMES, REPEATED, SCHEDULE, TRUTH, ScheduleFile, aliased, choice
from loadgen.settings import CLIENTS, CONFLUENT, NATIVE

CHAOS, LOAD, CLUSTER, OUTPUT = Panel.CHAOS, Panel.LOAD, Panel.CLUSTER, Panel.OUTPUT

#: Limits above which a run would fail after its start, because one machine cannot handle more.
MOST_PROCESSES = 100
MOST_PARTITIONS = 10_000
MOST_USERS = 10_000
#: The help's placeholder for a duration.
TIME = "TIME"

_WHERE = "where a run is written and what is kept of it does not change the run"
_WATCHED = "who watches a run does not change it"
_JUDGED = "where the verifier runs does not change the run"


def _broker(key: str) -> Decides:
    return lambda resolved: resolved.broker_config[key]


def _topic(key: str) -> Decides:
    return lambda resolved: resolved.topic_config[key]


def _producer(key: str) -> Decides:
    return lambda resolved: resolved.producer_in_use[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options as given; None if not given and without a default. ``seed`` must be given: the caller draws one."""

    time_limit_s: float = declared(
        "Duration of the load, including the warm-up (90s, 5m, 1h30m). Extended if the faults need it: each requested "
        "kind occurs at least once.",
        CHAOS,
        option="--time-limit",
        form=DURATION,
        metavar=TIME,
        default=60.0,
        unset="60s",
    )
    seed: int = declared("Seed of the schedule, always printed. Default: that of --schedule, or a random one.", CHAOS)
    faults: str | None = declared(
        "Comma-separated faults (see 'gapless list faults'), or basic, all or none.",
        CHAOS,
        default=None,
        unset=DEFAULT_FAULTS,
    )
    swarm: str | None = declared(
        "Draw faults and settings from the seed: survivable, harsh or historic (docs/faults.md).", CHAOS, default=None
    )
    overlap: bool = declared("Let faults overlap: some begin while another is active.", CHAOS, default=False)
    schedule: ScheduleFile | None = declared(  # noqa: RUF009 - it makes a field
        "A schedule to replay instead of --faults: the schedule.yaml of a run, or acks-1-loses (docs/faults.md).",
        CHAOS,
        default=None,
        form=SCHEDULE,
    )
    scenario: str | None = declared(
        "A named scenario: its schedule, and the load and settings that it needs (see 'gapless list scenarios').",
        CHAOS,
        default=None,
        metavar="NAME",
    )
    defects: tuple[str, ...] = declared(
        "Plant a known bug in the brokers: NAME[:probability]; repeatable (see 'gapless list defects').",
        CHAOS,
        option="--defect",
        default=(),
        form=REPEATED,
    )
    stalled_after_s: float = declared(
        "A partition in sync is stalled if it acknowledges nothing for this long after the last heal.",
        CHAOS,
        option="--stalled-after",
        form=DURATION,
        metavar=TIME,
        default=10.0,
        unset="10s",
        verdict={"stalled_after_s": None},
    )
    toxiproxy: str | None = declared("URL of a Toxiproxy to use instead of the built-in proxy.", CHAOS, default=None)
    acks: str | None = declared(
        "Acknowledgements that producers wait for. 0 and 1 turn idempotence off.",
        LOAD,
        default=None,
        form=aliased(Acks, {"-1": Acks.ALL}),
        metavar="0|1|all",
        unset="all",
        verdict={"acks": lambda resolved: resolved.acks},
    )
    idempotence: bool | None = declared(
        "enable.idempotence of the producers.",
        LOAD,
        default=None,
        form=TRUTH,
        unset="true",
        verdict={"idempotence": lambda resolved: resolved.idempotence},
    )
    workload: str | None = declared(
        "What to write and how fast: a name (see 'gapless list workloads') or a YAML file.",
        LOAD,
        default=None,
        metavar="NAME|FILE",
        unset=DEFAULT_WORKLOAD,
    )
    rate: int | None = declared(
        "Total records per second of all producers.",
        LOAD,
        default=None,
        least=1,
        shows_bounds=True,
        unset=f"the workload's, or {DEFAULT_RATE}",
        verdict={"rate": lambda resolved: resolved.workload.records_per_s},
    )
    users: int | None = declared(
        "Number of producers; each writes one stream to one partition.",
        LOAD,
        default=None,
        least=1,
        most=MOST_USERS,
        unset="one per partition",
        verdict={"users": lambda resolved: resolved.users},
    )
    record_bytes: int | None = declared(
        "Size of a record's value, in bytes.", LOAD, default=None, unset="the workload's, or 200"
    )
    load_processes: int = declared(
        "Number of load processes, which share the producers. Each writes its own history.",
        LOAD,
        default=1,
        least=1,
        most=MOST_PROCESSES,
        verdict={"load_processes": None},
    )
    client: str = declared(
        "Client of producers and readers: native, or confluent (librdkafka).",
        LOAD,
        default=CONFLUENT,
        metavar="native|confluent",
        verdict={"client": None},
    )
    readers: tuple[str, ...] = declared(
        "Comma-separated clients that read during the load: native, confluent.",
        LOAD,
        default=(CONFLUENT, NATIVE),
        form=NAMES,
        among=CLIENTS,
        verdict={"readers": None},
    )
    final_readers: tuple[str, ...] = declared(
        "Comma-separated clients that read everything at the end: confluent, kafka-python, native.",
        LOAD,
        default=(CONFLUENT, KAFKA_PYTHON),
        form=NAMES,
        among=FINAL_READERS,
        verdict={"final_readers": None},
    )
    final_patience_s: float | None = declared(
        "A final reader that gets nothing for this long gives up.",
        LOAD,
        option="--final-patience",
        form=DURATION,
        metavar=TIME,
        default=None,
        unset="30s",
    )
    producer_config: tuple[str, ...] = declared(
        "Producer configuration; repeatable.",
        LOAD,
        default=(),
        form=REPEATED,
        metavar="KEY=VALUE",
        verdict={
            "max_in_flight": _producer("max.in.flight.requests.per.connection"),
            "retries": _producer("retries"),
        },
    )
    consumer_config: tuple[str, ...] = declared(
        "Consumer configuration; repeatable.",
        LOAD,
        default=(),
        form=REPEATED,
        metavar="KEY=VALUE",
    )
    brokers: int = declared(
        "Number of brokers.", CLUSTER, default=3, least=1, most=MOST_PROCESSES, verdict={"brokers": None}
    )
    partitions: int | None = declared(
        "Partitions of the topic.",
        CLUSTER,
        default=None,
        least=1,
        most=MOST_PARTITIONS,
        shows_bounds=True,
        unset=f"the workload's, or {DEFAULT_PARTITIONS}",
        verdict={"partitions": lambda resolved: resolved.partitions},
    )
    replication_factor: int = declared(
        "Replication factor of the topic.", CLUSTER, default=3, least=1, verdict={"replication_factor": None}
    )
    min_insync_replicas: int | None = declared(
        "min.insync.replicas of the topic.",
        CLUSTER,
        default=None,
        least=1,
        unset="2, or 1 with fewer than 3 replicas",
    )
    profile: str = declared(
        "Base configuration: chaos (short timeouts) or kafka (Kafka's defaults).", CLUSTER, default="chaos"
    )
    broker_config: tuple[str, ...] = declared(
        "Broker configuration; repeatable.",
        CLUSTER,
        default=(),
        form=REPEATED,
        metavar="KEY=VALUE",
        verdict={
            "unknown_producer": _broker("gapless.unknown.producer"),
            "replica_lag_time_max_ms": _broker("replica.lag.time.max.ms"),
            "session_timeout_ms": _broker("zookeeper.session.timeout.ms"),
            "producer_id_expiration_ms": _broker("producer.id.expiration.ms"),
        },
    )
    topic_config: tuple[str, ...] = declared(
        "Topic configuration; repeatable.",
        CLUSTER,
        default=(),
        form=REPEATED,
        metavar="KEY=VALUE",
        verdict={
            "unclean_leader_election": _topic("unclean.leader.election.enable"),
        },
    )
    zookeeper: str | None = declared(
        "Use this ZooKeeper instead of starting one.", CLUSTER, default=None, metavar="HOST:PORT"
    )
    target: str | None = declared(
        "Run against a Kafka cluster that others started, at these addresses (docs/target.md).",
        CLUSTER,
        default=None,
        metavar="kafka://HOST:PORT,...",
        verdict={"target": None},
    )
    replica_dirs: tuple[str, ...] = declared(
        "Data directory of a broker of --target; its replicas are then judged. Repeatable.",
        CLUSTER,
        option="--replica-dir",
        default=(),
        form=REPEATED,
        metavar="ID=DIR",
        verdict={"replica_dirs": None},
    )
    nodes: str | None = declared(
        "YAML file that says how the brokers of --target are killed, paused and started (docs/target.md).",
        CLUSTER,
        default=None,
        metavar="FILE",
    )
    name: str = declared("Name of the experiment: results/NAME/...", OUTPUT, default="run")
    out: str | None = declared(
        "Run directory, instead of results/NAME/TIME-sSEED.", OUTPUT, default=None, outside_repro=_WHERE
    )
    keep: str = declared(
        "Which runs keep their broker data: all, failed or none.",
        OUTPUT,
        default="failed",
        form=choice(Keep),
        outside_repro=_WHERE,
    )
    unjudged: bool = declared(
        "Do not judge the run: it is unknown until 'gapless verify' judges it.",
        OUTPUT,
        option="--no-verify",
        default=False,
        outside_repro=_JUDGED,
    )
    spark_master: str = declared("Spark master for the verifier.", OUTPUT, default="local[2]", outside_repro=_JUDGED)
    web: bool = declared(
        "Serve Locust's web UI with a Chaos tab during the load, on 127.0.0.1 only.",
        OUTPUT,
        default=False,
        outside_repro=_WATCHED,
    )
    web_port: int | None = declared(
        "Port of the web UI; implies --web.",
        OUTPUT,
        default=None,
        least=1,
        most=65535,
        shows_bounds=True,
        unset="a free port, printed",
        outside_repro=_WATCHED,
    )
