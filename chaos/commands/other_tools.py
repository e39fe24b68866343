"""Maps commands and options of other tools to those of gapless, for hints. Owns the tables. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

#: The least similarity at which one name is suggested for another.
LIKELY = 0.7

#: An unknown command -> what to use instead.
COMMANDS: Mapping[str, str] = {
    "browse": "use 'gapless serve' to show stored runs; 'gapless run --web' shows a run in progress",
    **dict.fromkeys(("analyze", "analyse", "check", "judge"), "use 'gapless verify PATH' to judge a stored run"),
    **dict.fromkeys(("test", "chaos"), "use 'gapless run' to break a cluster and judge it"),
    "stress": "use 'gapless run' to break a cluster and judge it, or 'gapless run --faults none' only to load it",
    "bench": "use 'gapless run --faults none' to load a cluster without breaking it",
    "demo": "use 'gapless run' for a valid run, or 'gapless run --defect lose-acked:0.01' for an invalid one",
    "demo-red": "use 'make demo-red', or 'gapless run --defect lose-acked:0.01'",
    "nightly": "use 'gapless sweep nightly --minutes 20' to cover all faults and workloads",
    **dict.fromkeys(("stop", "kill"), "use 'gapless down' to stop a running cluster"),
    "cluster": "use 'gapless up' to start one",
    **dict.fromkeys(("repeat", "rerun", "again"), "use 'gapless replay RUN' to play what happened in a run again"),
    "results": "use 'gapless report PATH' for the path of a run's report; runs are in results/",
    **dict.fromkeys(("show", "open"), "use 'gapless report PATH' for the path of a run's report"),
    **{name: f"use 'gapless list {name}'" for name in ("faults", "checks", "defects", "workloads", "sweeps")},
    "help": "use 'gapless --help'",
    "version": "use 'gapless --version'",
    "toxiproxy": "use 'gapless proxy' to run a server of its API",
}

#: An unknown option -> gapless's options that may be meant, the likeliest first.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("-t", "--time", "--duration", "--timeout", "--run-time", "--seconds"), ("--time-limit",)),
    **dict.fromkeys(("--nemesis", "--fault", "--chaos", "-f"), ("--faults",)),
    **dict.fromkeys(("-n", "--nodes", "--node-count", "--broker"), ("--brokers",)),
    **dict.fromkeys(("-u", "-c", "--concurrency", "--clients", "--producers", "--threads"), ("--users",)),
    **dict.fromkeys(("--replicas", "--replication", "--rf"), ("--replication-factor",)),
    **dict.fromkeys(("-o", "-d", "--output", "--output-dir", "--dir", "--directory"), ("--out", "--data")),
    **dict.fromkeys(("-p", "--partition"), ("--partitions",)),
    **dict.fromkeys(("-r", "--throughput", "--tps"), ("--rate",)),
    **dict.fromkeys(("--record-size", "--message-size", "--value-bytes", "--value-size"), ("--record-bytes",)),
    **dict.fromkeys(("-s", "--random-seed"), ("--seed", "--seeds")),
    **dict.fromkeys(("--ui", "--web-ui"), ("--web",)),
    **dict.fromkeys(("--bug", "--bugs", "--defects"), ("--defect",)),
    **dict.fromkeys(("--config",), ("--broker-config",)),
    **dict.fromkeys(("--zk", "--zookeeper-connect"), ("--zookeeper",)),
    **dict.fromkeys(("--format",), ("--json",)),
}

#: Options for features that do not exist -> what exists instead.
_NOT_HERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("-b", "--bootstrap-server", "--bootstrap-servers", "--broker-list"),
        "a run starts its own cluster; for yours, use --target kafka://HOST:PORT (docs/target.md)",
    ),
    **dict.fromkeys(
        ("--messages", "--records", "--num-records", "--count", "--test-count"), "use --rate and --time-limit instead"
    ),
    "--topic": "a run creates its own topic; --topic-config sets its configuration",
}


def meant(option: str, known: Collection[str], near: Collection[str]) -> str:
    """The hint for an option that a command does not know, or "".

    ``known`` are its options, ``near`` those of them that are spelled alike.
    """
    found = next((each for each in _OPTIONS.get(option, ()) if each in known), None)
    if found is not None:
        return f"did you mean {found}?"
    if option in _NOT_HERE and "--rate" in known:
        return _NOT_HERE[option]
    alike = get_close_matches(option, near, n=2, cutoff=LIKELY)
    return f"did you mean {' or '.join(alike)}?" if alike else ""
