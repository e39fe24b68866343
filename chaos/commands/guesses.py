"""What people type who know other tools, and what they mean by it. Owns both tables; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

#: How alike two names are before one is taken for the other.
LIKELY = 0.7

#: An unknown command -> what does that here.
COMMANDS: Mapping[str, str] = {
    "serve": "'gapless report' prints where a run's report is, 'gapless run --web' shows a run while it lasts",
    "analyze": "'gapless verify PATH' judges what is stored",
    "analyse": "'gapless verify PATH' judges what is stored",
    "check": "'gapless verify PATH' judges what is stored",
    "judge": "'gapless verify PATH' judges what is stored",
    "test": "'gapless run' breaks a cluster and judges it",
    "chaos": "'gapless run' breaks a cluster and judges it",
    "stress": "'gapless run' breaks a cluster and judges it; 'gapless run --faults none' loads it alone",
    "bench": "'gapless run --faults none' loads a cluster without breaking it",
    "demo": "'gapless run' shows a valid run, 'gapless run --defect lose-acked:0.01' one that is invalid",
    "demo-red": "that is 'make demo-red', or 'gapless run --defect lose-acked:0.01'",
    "nightly": "'gapless sweep nightly --minutes 20' goes through faults and workloads",
    "start": "'gapless up --detach' starts a cluster, 'gapless run' breaks one",
    "stop": "'gapless down' stops a cluster that is up",
    "kill": "'gapless down' stops a cluster that is up",
    "cluster": "'gapless up' starts one",
    "replay": "'gapless run --schedule RUN/schedule.yaml' plays a schedule again",
    "results": "'gapless report PATH' prints where a run's report is; runs are in results/",
    "show": "'gapless report PATH' prints where a run's report is",
    "open": "'gapless report PATH' prints where a run's report is",
    "faults": "'gapless list faults' lists them",
    "checks": "'gapless list checks' lists them",
    "defects": "'gapless list defects' lists them",
    "workloads": "'gapless list workloads' lists them",
    "sweeps": "'gapless list sweeps' lists them",
    "help": "that is 'gapless --help'",
    "version": "that is 'gapless --version'",
    "toxiproxy": "'gapless proxy' runs the server of its API",
}

#: An unknown option -> those of ours that may be meant, the likeliest first.
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
        ("-b", "--bootstrap-server", "--bootstrap-servers", "--broker-list", "--target"),
        "a run starts its own cluster; docs/load.md says how to load your own",
    ),
    **dict.fromkeys(
        ("--messages", "--records", "--num-records", "--count", "--test-count"), "say --rate and --time-limit instead"
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
