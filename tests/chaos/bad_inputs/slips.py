"""Slips and words of other tools, on any command line: a table."""

from __future__ import annotations

from tests.chaos.bad_inputs.model import BadInput

SLIPS: list[BadInput] = [
    (["groups", "list", "x"], ["groups list takes no argument 'x'", "'gapless groups list --help'"]),
    (["runn"], ["unknown command 'runn'", "did you mean 'run'?", "'gapless --help'"]),
    (["list", "fault"], ["fault", "faults"]),
    (["list"], ["list needs one of faults, checks,", "'gapless list --help'"]),
    *(
        (["run", option, "30"], [f"unknown option {option}; did you mean {ours}? (see 'gapless run --help')"])
        for option, ours in (
            *(("-t", "--time-limit"), ("--duration", "--time-limit"), ("--run-time", "--time-limit")),
            *(("--nemesis", "--faults"), ("--fault", "--faults"), ("--node-count", "--brokers"), ("-n", "--brokers")),
            *(("--concurrency", "--users"), ("--rf", "--replication-factor"), ("--output", "--out"), ("-r", "--rate")),
            *(("--message-size", "--record-bytes"), ("--ui", "--web"), ("--bug", "--defect"), ("--zk", "--zookeeper")),
            *(("--sed", "--seed"), ("--time-limt", "--time-limit"), ("-s", "--seed"), ("-p", "--partitions")),
        )
    ),
    *(
        ([command, option, "3"], [f"unknown option {option}; did you mean {ours}?", f"'gapless {command} --help'"])
        for command, option, ours in (
            *(("up", "--nodes", "--brokers"), ("up", "-o", "--data"), ("sweep", "--duration", "--time-limit")),
            *(("sweep", "--seed", "--seeds"), ("sweep", "-o", "--out"), ("verify", "--format", "--json")),
            ("export", "-o", "--out"),
        )
    ),
    *(
        ([command], [f"unknown command '{command}'; ", says, "(see 'gapless --help')"])
        for command, says in (
            *(("browse", "'gapless serve'"), ("analyze", "'gapless verify PATH'"), ("test", "'gapless run' to break")),
            *(("demo", "--defect lose-acked:0.01"), ("stop", "'gapless down'")),
            *(("check", "'gapless verify PATH'"), ("rerun", "'gapless replay RUN'"), ("help", "--help")),
            ("nightly", "'gapless sweep nightly --minutes 20'"),
            *(("version", "--version"), ("faults", "'gapless list faults'"), ("bench", "--faults none")),
            *(
                ("verfy", "did you mean 'verify'?"),
                ("expotr", "did you mean 'export'?"),
                ("Run", "did you mean 'run'?"),
            ),
        )
    ),
    (["frobnicate"], ["unknown command 'frobnicate' (see 'gapless --help')"]),
    (["run", "--colour", "red"], ["--colour", "'gapless run --help'"]),
    (["--colour"], ["unknown option --colour before the command", "'gapless run --seed 7'"]),
    (["--seed", "7", "run"], ["unknown option --seed before the command", "'gapless run --seed 7'"]),
    (["-t", "30"], ["unknown option -t before the command"]),
    (["run", "30"], ["run takes no argument '30' (see 'gapless run --help')"]),
    (["up", "3"], ["up takes no argument '3' (see 'gapless up --help')"]),
    (["status", "now"], ["status takes no argument 'now'"]),
    (["list", "faults", "checks"], ["list takes no argument 'checks'"]),
    (["run", "--rate"], ["--rate needs a value (see 'gapless run --help')"]),
    (["verify", "full", "--out"], ["--out needs a value (see 'gapless verify --help')"]),
    (["run", "-q", "-v"], ["--quiet and --verbose are mutually exclusive; leave one of them out"]),
    (["sweep", "seeds", "-qv"], ["--quiet and --verbose are mutually exclusive"]),
    (["-v"], ["unknown option -v before the command"]),
    (["list", "links and things"], ["LIST", "'links and things'"]),
    (
        ["list", "faults", "--brokers", "5"],
        ["--brokers works only with 'gapless list links'", "leave it out"],
    ),
    (["list", "links", "--brokers", "0"], ["--brokers must be at least 1, not 0"]),
    *(
        ([command, option, ""], [f"{option} is empty; give it a value, or leave it out"])
        for command, option in (
            *(("run", "--acks"), ("run", "--name"), ("run", "--schedule"), ("run", "--toxiproxy"), ("run", "--client")),
            *(("run", "--defect"), ("run", "--rate"), ("sweep", "--resume"), ("sweep", "--filter"), ("sweep", "--out")),
            *(
                ("up", "--data"),
                ("proxy", "--host"),
                ("broker", "--config"),
                ("export", "--out"),
                ("dump", "--offsets"),
            ),
        )
    ),
    *(([command, ""], ["an argument is empty"]) for command in ("verify", "report", "export", "dump", "sweep")),
    (["uo"], ["unknown command 'uo'; did you mean 'up'? (see 'gapless --help')"]),
]
