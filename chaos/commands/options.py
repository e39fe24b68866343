"""The options of ``gapless run``. Owns their names, types and help; what they do is decided elsewhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

LOAD, CLUSTER, CHAOS, OUTPUT = "Load", "Cluster", "Chaos", "Output"


class Acks(StrEnum):
    """What a producer waits for."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Keep(StrEnum):
    """What is kept of the brokers' data."""

    ALL = "all"
    FAILED = "failed"
    NONE = "none"


class Truth(StrEnum):
    """A yes or no that is said aloud."""

    TRUE = "true"
    FALSE = "false"


TimeLimit = Annotated[float, typer.Option(help="Seconds of load: warm-up and chaos.", rich_help_panel=CHAOS)]
Seed = Annotated[
    int | None, typer.Option(help="Repeats a schedule. Random if absent; always printed.", rich_help_panel=CHAOS)
]
Faults = Annotated[
    str | None,
    typer.Option(
        help="Comma list of faults (gapless list faults), 'basic', 'all' or 'none'. [dim]default: basic[/dim]",
        show_default=False,
        rich_help_panel=CHAOS,
    ),
]
Overlap = Annotated[
    bool,
    typer.Option("--overlap", help="Compose faults: some begin while another lasts.", rich_help_panel=CHAOS),
]
Schedule = Annotated[
    Path | None,
    typer.Option(help="A schedule to replay (schedule.yaml of a run), instead of --faults.", rich_help_panel=CHAOS),
]
Defect = Annotated[
    list[str] | None,
    typer.Option(
        help=("Switch wrong logic on: NAME[:probability], repeatable (gapless list defects)."), rich_help_panel=CHAOS
    ),
]
Toxiproxy = Annotated[
    str | None,
    typer.Option(help="URL of a Toxiproxy to use instead of our own server of its API.", rich_help_panel=CHAOS),
]
AcksOption = Annotated[
    Acks | None,
    typer.Option(
        help=("What producers wait for. 0 and 1 turn idempotence off. [dim]default: all[/dim]"),
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
Idempotence = Annotated[
    Truth | None,
    typer.Option(
        help="enable.idempotence of the producers. [dim]default: true[/dim]",
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="What is written and how fast (gapless list workloads, or a YAML file). [dim]default: steady[/dim]",
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
Rate = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Records per second, all producers together. [dim]default: the workload's, or 1500[/dim]",
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
LoadProcesses = Annotated[
    int, typer.Option(help="Processes that share the producers; each has its own history.", rich_help_panel=LOAD)
]
Users = Annotated[
    int | None,
    typer.Option(
        help=("Producers; each is one stream on one partition. [dim]default: one per partition[/dim]"),
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
RecordBytes = Annotated[
    int | None,
    typer.Option(
        help="Bytes of a record's value. [dim]default: the workload's, or 200[/dim]",
        show_default=False,
        rich_help_panel=LOAD,
    ),
]
Client = Annotated[
    str,
    typer.Option(
        metavar="native|confluent",
        help="The producers' and readers' client: ours, or librdkafka (confluent).",
        rich_help_panel=LOAD,
    ),
]
ProducerConfig = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A producer's configuration, repeatable.", rich_help_panel=LOAD),
]
ConsumerConfig = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A consumer's configuration, repeatable.", rich_help_panel=LOAD),
]
Brokers = Annotated[int, typer.Option(help="Broker processes.", rich_help_panel=CLUSTER)]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Partitions of the topic. [dim]default: the workload's, or 6[/dim]",
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
ReplicationFactor = Annotated[int, typer.Option(help="Replicas of each partition.", rich_help_panel=CLUSTER)]
MinInsyncReplicas = Annotated[
    int | None,
    typer.Option(
        help=("min.insync.replicas of the topic. [dim]default: 2, or 1 with fewer than 3 replicas[/dim]"),
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        help=("Base of all configuration: chaos (short timeouts) or kafka (Kafka's defaults)."), rich_help_panel=CLUSTER
    ),
]
BrokerConfig = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A broker's configuration, repeatable.", rich_help_panel=CLUSTER),
]
TopicConfig = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="The topic's configuration, repeatable.", rich_help_panel=CLUSTER),
]
Zookeeper = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Use this ZooKeeper instead of starting one.", rich_help_panel=CLUSTER),
]
Name = Annotated[str, typer.Option(help="The experiment's name: results/NAME/...", rich_help_panel=OUTPUT)]
Out = Annotated[
    str | None,
    typer.Option(help="The run directory itself, instead of results/NAME/TIME-sSEED.", rich_help_panel=OUTPUT),
]
KeepOption = Annotated[
    Keep, typer.Option(help="Whose data directories stay: all runs', failed ones', none.", rich_help_panel=OUTPUT)
]
SparkMaster = Annotated[str, typer.Option(help="Where the verifier runs.", rich_help_panel=OUTPUT)]
Web = Annotated[
    bool,
    typer.Option(
        "--web",
        help="Locust's web interface with a Chaos tab, on this machine alone and while the load lasts.",
        rich_help_panel=OUTPUT,
    ),
]
WebPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        help="Its port; implies --web. [dim]default: a free one, printed[/dim]",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print verdict.json's object alone on stdout; RESULT goes to stderr.", rich_help_panel=OUTPUT
    ),
]
