"""The examples at the end of every command's help. Owns their words; that each can be parsed is tested."""

from __future__ import annotations

from collections.abc import Mapping

#: Command -> (command line, what it is for). The empty command is gapless itself.
EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("gapless run", "break a cluster for a minute and judge it"),
        ("gapless run --defect lose-acked:0.01", "the same with a planted bug: the verdict is invalid"),
        ("gapless up", "a cluster for Kafka clients"),
    ),
    "run": (
        ("gapless run --time-limit 5m --faults all", "five minutes of every fault"),
        ("gapless run --faults kill-leader,cut-link --seed 7", "only these, on a repeatable schedule"),
        ("gapless run --acks 1 --name weak", "what weaker settings lose: results/weak/..."),
        ("gapless run --schedule results/latest/schedule.yaml", "replay the last schedule"),
        ("gapless run --target kafka://localhost:9092 --faults reset,cut-link", "a cluster that others started"),
        ("gapless run -q --json", "for scripts: one JSON object on stdout, no progress"),
    ),
    "replay": (
        ("gapless replay results/latest", "play again what happened in the last run"),
        ("gapless replay -q --json results/latest", "for scripts: one JSON object on stdout, with 'replay' in it"),
    ),
    "shrink": (
        ("gapless shrink results/latest", "the smallest schedule, duration and load that still fail"),
        ("gapless shrink results/latest --max-runs 20 --anomaly lost-write", "faster, and for one anomaly only"),
    ),
    "sweep": (
        ("gapless sweep delivery --list", "list its cells without running them"),
        ("gapless sweep delivery --filter 'acks=1,fault=none|reset'", "some of them"),
        ("gapless sweep seeds --seeds 20 --time-limit 30s", "the default run with the seeds 1 to 20"),
        ("gapless sweep nightly --minutes 20", "what CI runs each night, for twenty minutes"),
        ("gapless sweep --resume results/seeds/TIME", "resume an interrupted sweep"),
    ),
    "verify": (
        ("gapless verify results/latest", "judge the last run again"),
        ("gapless verify --json history.edn", "judge a Jepsen history"),
    ),
    "report": (("gapless report results/latest", "where the last run's report is"),),
    "export": (
        ("gapless export results/latest --edn --out history.edn", "for Jepsen's checker"),
        ("gapless export results/latest --jsonl", "for your own program"),
    ),
    "runs": (
        ("gapless runs", "all stored runs, newest first"),
        ("gapless runs prune --keep 20 --dry-run", "what pruning would remove"),
    ),
    "serve": (
        ("gapless serve", "the runs and sweeps of results/ at http://127.0.0.1:8080/"),
        ("gapless serve --results /data/results --port 0", "another results directory, on a free port"),
    ),
    "load": (
        ("gapless load --host localhost:9092 --run-time 60s", "a minute of load on your cluster"),
        ("gapless load --host localhost:9092 --web", "the same, started and watched in Locust's web UI"),
    ),
    "fault": (
        ("gapless fault kill-leader orders-0", "in a cluster started by 'gapless up'"),
        ("gapless fault cut-link b1-b2 --duration 10", "one link, for ten seconds"),
    ),
    "start": (("gapless start 2", "broker 2 of the cluster that 'gapless up' started, after kill -9"),),
    "groups": (
        ("gapless groups list", "of the cluster that 'gapless up' started"),
        ("gapless groups describe billing --bootstrap-server localhost:9092", "members, offsets and lag"),
        ("gapless groups reset-offsets billing --to earliest --execute", "read everything again"),
    ),
    "transactions": (
        ("gapless transactions list --state Ongoing", "what is open in the cluster that 'gapless up' started"),
        ("gapless transactions find-hanging --broker-id 1", "what holds up readers, and no one will end"),
        ("gapless transactions abort --topic orders --partition 0 --start-offset 42", "end it there"),
        ("gapless transactions abort --transactional-id billing", "end what a producer has left open"),
    ),
    "up": (
        ("gapless up --port 9092", "three brokers at 9092 to 9094, until Ctrl-C"),
        ("gapless up --brokers 1 --detach", "one broker in the background"),
        ("gapless up --broker-config num.partitions=6", "with a Kafka setting"),
    ),
    "status": (("gapless status", "what 'gapless up --detach' started"),),
    "down": (("gapless down", "stop what 'gapless up --detach' started"),),
    "broker": (
        ("gapless broker --config server.properties", "as kafka-server-start.sh"),
        ("KAFKA_BROKER_ID=1 KAFKA_ZOOKEEPER_CONNECT=zk:2181 gapless broker", "as in a container"),
    ),
    "proxy": (("gapless proxy --port 8474", "as toxiproxy-server"),),
    "list": (
        ("gapless list faults", "what --faults takes"),
        ("gapless list checks --json", "what the verifier checks, as JSON"),
        ("gapless list links --brokers 5", "what cut-link and slow-link take as a target"),
    ),
    "dump": (
        ("gapless dump results/up/nodes/1/data", "the replicas of a broker, checked"),
        ("gapless dump 00000000000000000000.log --records --offsets 5..9", "records of a segment"),
    ),
}


def epilog(command: str) -> str:
    """The text for the help: one example per line, what it is for above it."""
    lines = ["Examples:"]
    for line, purpose in EXAMPLES[command]:
        lines += [f"  [dim]# {purpose}[/dim]", f"  {line}"]
    return "\n".join(lines)
