"""What is typed and cannot be done, and what the one line about it must hold: tables, and the files that they name.

Owns no test; ``test_commands`` runs them all.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.chaos.unplayable import UNPLAYABLE
from tests.support.settings import run_model

#: Arguments, and what the one line must hold: the thing, and the way out.
BAD = [
    (["groups"], ["list, describe, reset-offsets or delete", "'gapless groups --help'"]),
    (["groups", "lst"], ["lst", "list"]),
    (["groups", "list"], ["no cluster is running in results/up", "--bootstrap-server"]),
    (["groups", "list", "--bootstrap-server", "x"], ["--bootstrap-server", "not a host:port address: 'x'"]),
    (["groups", "describe"], ["groups describe needs GROUP...", "(see 'gapless groups describe --help')"]),
    (["groups", "list", "x"], ["groups list takes no argument 'x'", "'gapless groups list --help'"]),
    (["groups", "list", "--state", "stable"], ["--state stable: no group has this state", "Stable"]),
    (["groups", "list", "--state", "Reconciling"], ["no cluster is running in results/up"]),
    *[
        (["groups", *words, "\udcff", "--bootstrap-server", "127.0.0.1:1"], ["GROUP: the id of a group is valid text"])
        for words in (["describe"], ["delete"], ["reset-offsets", "--to", "latest"])
    ],
    (["groups", "reset-offsets", "g", "--to", "soon"], ["--to soon", "earliest, latest", "-10"]),
    (["transactions"], ["list, describe, describe-producers, abort or find-hanging", "'gapless transactions --help'"]),
    (["transactions", "list"], ["no cluster is running in results/up", "--bootstrap-server"]),
    (["transactions", "list", "--state", "ongoing"], ["--state ongoing", "Ongoing"]),
    (
        ["transactions", "describe", "x"],
        ["describe needs --transactional-id", "'gapless transactions describe --help'"],
    ),
    (["transactions", "find-hanging"], ["--topic or --broker-id", "'gapless transactions find-hanging --help'"]),
    (["transactions", "list", "--producer-id", "-1"], ["--producer-id must be at least 0, not -1"]),
    (["transactions", "list", "--duration-filter", f"{2**63}"], ["--duration-filter must be at most", f"not {2**63}"]),
    (
        ["transactions", "describe", "--transactional-id", "\udcff", "--bootstrap-server", "127.0.0.1:1"],
        ["--transactional-id: a transactional id is valid text"],
    ),
    (
        ["transactions", "find-hanging", "--topic", "\udcff", "--bootstrap-server", "127.0.0.1:1"],
        ["--topic: no topic can have this name"],
    ),
    (["transactions", "describe"], ["--transactional-id", "--help"]),
    (["transactions", "describe", "--transactional-id", ""], ["--transactional-id is empty"]),
    (["transactions", "describe-producers", "--topic", "t"], ["--partition", "--help"]),
    (["transactions", "find-hanging", "--broker-id", "1", "--partition", "0"], ["--partition needs --topic"]),
    (["transactions", "abort"], ["--topic and --partition, or --transactional-id"]),
    (["transactions", "abort", "--topic", "t", "--partition", "0"], ["--start-offset", "--coordinator-epoch"]),
    (["transactions", "abort", "--topic", "t", "--partition", "-1"], ["--partition must be at least 0, not -1"]),
    (["transactions", "abort", "--topic", "t", "--transactional-id", "x"], ["--transactional-id", "without"]),
    (
        ["transactions", "abort", "--topic", "t", "--partition", "0", "--start-offset", "1", "--producer-id", "1"],
        ["--start-offset", "without --producer-id"],
    ),
    (["run", "--colour", "red"], ["--colour", "'gapless run --help'"]),
    (["runn"], ["unknown command 'runn'", "did you mean 'run'?", "'gapless --help'"]),
    (["run", "--rate", "much"], ["--rate must be an integer, not 'much'", "'gapless run --help'"]),
    (["run", "--rate", "-5"], ["--rate must be at least 1, not -5"]),
    (["run", "--idempotence", "maybe"], ["--idempotence: 'maybe' is not one of 'true', 'false' (see"]),
    (["run", "--acks", "2"], ["gapless: --acks must be 0, 1 or all, not '2' (see 'gapless run --help')"]),
    (["run", "--faults", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["run", "--faults", "flood"], ["flood", "gapless list faults"]),
    (["run", "--faults", "none,all"], ["'none'", "give it alone"]),
    (["run", "--faults", ","], ["',' names no fault", "'none'"]),
    (["run", "--faults", ""], ["--faults is empty", "leave it out"]),
    (["run", "--workload", ""], ["--workload is empty", "leave it out"]),
    (["run", "--out", ""], ["--out is empty", "leave it out"]),
    (["run", "--defect", "lose-aked"], ["lose-aked", "lose-acked"]),
    (["run", "--defect", "foo"], ["unknown defect 'foo'; 'gapless list defects' shows all"]),
    (["run", "--defect", "lose-acked:7"], ["lose-acked", "at most 1"]),
    (["run", "--broker-config", "replica.lag.tme.max.ms=3"], ["replica.lag.tme.max.ms", "replica.lag.time.max.ms"]),
    (["run", "--topic-config", "retention.mss=3"], ["retention.mss", "retention.ms"]),
    (["run", "--producer-config", "akcs=1"], ["akcs", "acks"]),
    (["run", "--consumer-config", "isolation.levle=x"], ["isolation.levle", "isolation.level"]),
    (["run", "--broker-config", "replica.lag.time.max.ms=soon"], ["replica.lag.time.max.ms", "soon"]),
    (["run", "--broker-config", "bare"], ["--broker-config", "KEY=VALUE", "'bare'"]),
    (["run", "--topic-config", "bare"], ["--topic-config", "KEY=VALUE", "'bare'"]),
    (["run", "--producer-config", "=1"], ["--producer-config", "KEY=VALUE", "'=1'"]),
    (["run", "--consumer-config", "bare"], ["--consumer-config", "KEY=VALUE", "'bare'"]),
    (["run", "--schedule", "absent.yaml"], ["--schedule absent.yaml", "there is no such file"]),
    (["run", "--schedule", "broken.yaml"], ["--schedule broken.yaml", "not YAML"]),
    (["run", "--schedule", "other.yaml"], ["--schedule other.yaml"]),
    (["run", "--schedule", "."], ["--schedule .", "it is a directory, not a file"]),
    (["run", "--schedule", "latin.yaml"], ["--schedule latin.yaml", "line 1", "not UTF-8"]),
    (["run", "--schedule", "twice.yaml"], ["--schedule twice.yaml", "line 3", "'seed' is given twice"]),
    (["run", "--workload", "twice.yaml"], ["workload twice.yaml", "line 3", "'seed' is given twice"]),
    (["run", "--workload", "."], ["workload .", "it is a directory, not a file"]),
    (["run", "--brokers", "2"], ["--replication-factor 3", "--brokers"]),
    (["run", "--brokers", "0"], ["--brokers must be at least 1"]),
    (["run", "--min-insync-replicas", "4"], ["--min-insync-replicas 4", "--replication-factor 3"]),
    (["run", "--acks", "1", "--idempotence", "true"], ["idempotence", "acks 1", "leave one of them out"]),
    (["run", "--acks", "1", "--producer-config", "acks=all"], ["--acks 1", "acks=all", "leave one of them out"]),
    (["run", "--time-limit", "2"], ["--time-limit", "warm-up"]),
    (["run", "--time-limit", "nan"], ["--time-limit must be a time such as 90s, 5m or 1h30m", "not 'nan' (see"]),
    (["run", "--time-limit", "inf"], ["--time-limit must be a time", "'inf'"]),
    (["run", "--time-limit", "-5"], ["--time-limit must be a time", "'-5'"]),
    (["run", "--time-limit", "1e3"], ["--time-limit must be a time", "'1e3'"]),
    (["run", "--time-limit", "5 m"], ["--time-limit must be a time", "'5 m'"]),
    (["run", "--time-limit", "30m1h"], ["--time-limit must be a time", "'30m1h'"]),
    (["run", "--time-limit", ""], ["--time-limit is empty", "leave it out"]),
    (["run", "--time-limit", "0"], ["--time-limit must be longer than the warm-up of 4 s", "not 0 s"]),
    (["run", "--time-limit", "1000h"], ["--time-limit must be", "at most 720h", "not 3.6e+06 s"]),
    (["run", "--schedule", "late.yaml"], ["--schedule late.yaml", "pause-leader at 500.5 s begins after the 60 s of"]),
    (["run", "--schedule", "seed.yaml"], ["--schedule seed.yaml", "'seed'", "must be an integer, not True"]),
    (["run", "--schedule", "late.yaml"], ["give --time-limit 504s, or take it out"]),
    (["run", "--schedule", "late.yaml", "--time-limit", "8m22s"], ["at 500.5 s lasts until 503.5 s, after the 502 s"]),
    (["run", "--record-bytes", "9"], ["gapless: --record-bytes 9: values have at least 48 bytes"]),
    (["run", "--record-bytes", "-1"], ["gapless: --record-bytes -1: values have at least 48 bytes"]),
    (
        ["run", "--defect", "lose-acked,refuse-batches:1"],
        ["names several defects", "--defect lose-acked --defect refuse"],
    ),
    (["up", "--defect", "lose-acked,refuse-batches"], ["names several defects", "--defect lose-acked --defect refuse"]),
    (["sweep", "seeds", "--seeds", "2", "--random", "2"], ["--seeds and --random are mutually exclusive"]),
    (["sweep", "seeds", "--random", "0"], ["--random must be at least 1, not 0"]),
    (
        ["sweep", "in-flight", "--client", "confluent"],
        ["--client confluent: in-flight runs only with native", "leave it"],
    ),
    (["run", "--record-bytes", "2000000"], ["--record-bytes 2000000", "message.max.bytes 1000000", "at most 999964"]),
    (["run", "--client", "native", "--workload", "rare.yaml"], ["rare.yaml", "max.request.size 1048576", "=2000"]),
    (["run", "--name", "../away"], ["--name '../away'", "results/"]),
    (["run", "--name", "latest"], ["--name 'latest'", "pick another"]),
    (["run", "--profile", "fast"], ["fast", "chaos, kafka"]),
    (["run", "--client", "java"], ["--client java", "--client confluent"]),
    (["run", "--workload", "stedy"], ["unknown workload 'stedy'", "steady"]),
    (["run", "--workload", "small", "--rate", "5"], ["--rate 5 contradicts rate 10000 of workload small"]),
    (["run", "--out", "file"], ["directory file cannot be used: a file of that name is in the way", "--out"]),
    (["run", "--out", "file/run"], ["file/run", "a part of its path is a file", "--out"]),
    (["run", "--out", "full"], ["full is not empty", "--out"]),
    (["run", "--zookeeper", "nowhere"], ["--zookeeper", "HOST:PORT"]),
    (["run", "--web-port", "0"], ["--web-port must be at least 1, not 0"]),
    (["run", "--spark-master", "spark://host"], ["--spark-master", "spark://HOST:PORT", "'spark://host'"]),
    (["run", "--spark-master", "spark:/host:7077"], ["--spark-master", "local[N]", "'spark:/host:7077'"]),
    (["run", "--spark-master", "spark://host:port"], ["--spark-master", "'spark://host:port'"]),
    (["run", "--spark-master", "locale"], ["--spark-master", "'locale'"]),
    (["run", "--spark-master", "local[none]"], ["--spark-master", "'local[none]'"]),
    (["sweep"], ["gapless list sweeps", "--resume"]),
    (["sweep", "delivry"], ["delivry", "delivery"]),
    (["sweep", "delivery", "--filter", "falt=none"], ["falt", "fault"]),
    (["sweep", "delivery", "--filter", "fault=nine"], ["nine", "none"]),
    (["sweep", "delivery", "--filter", "acks=0,idempotence=on"], ["--filter", "--list"]),
    (["sweep", "delivery", "--seeds", "0"], ["--seeds 0"]),
    (["sweep", "delivery", "--faults", "all"], ["--faults", "'seeds'"]),
    (["sweep", "nightly", "--minutes", "0"], ["--minutes must be at least 1, not 0", "'gapless sweep --help'"]),
    (["sweep", "nightly", "--minutes", "1h"], ["--minutes must be an integer, not '1h'"]),
    (["sweep", "nightly", "--defect", "lose-aked"], ["lose-aked", "lose-acked"]),
    (["sweep", "nightly", "--rate", "5"], ["--rate 5 contradicts rate", "leave one of them out"]),
    (["sweep", "delivery", "--defect", "lose-acked"], ["--defect works only with the sweeps 'seeds' and 'nightly'"]),
    (["sweep", "delivery", "--time-limit", "2"], ["--time-limit", "warm-up"]),
    (["sweep", "seeds", "--client", "java"], ["--client java", "--client confluent"]),
    (["sweep", "seeds", "--faults", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["sweep", "seeds", "--faults", "kill-leadr", "--list"], ["kill-leadr", "kill-leader"]),
    (["run", "--producer-config", "client.id=me"], ["--producer-config client.id=me", "leave it out"]),
    (["sweep", "seeds", "--out", "full"], ["full is not empty", "--out"]),
    (["sweep", "--resume", "full"], ["--resume full", "sweep.json"]),
    (["sweep", "delivery", "--resume", "full"], ["--resume", "--filter"]),
    (["sweep", "--resume", "old"], ["--resume old", "another version", "again"]),
    (["list", "fault"], ["fault", "faults"]),
    (["list"], ["list needs one of faults, checks,", "'gapless list --help'"]),
    (["sweep", "delivery", "--rate", "0"], ["--rate must be at least 1, not 0", "'gapless sweep --help'"]),
    (["sweep", "delivery", "--time-limit", "0"], ["--time-limit must be longer than the warm-up", "not 0 s"]),
    (
        ["sweep", "seeds", "--time-limit", "soon"],
        ["--time-limit must be a time such as 90s", "'soon'", "'gapless sweep"],
    ),
    (["sweep", "--resume", "file"], ["--resume file", "sweep.json"]),
    (["verify", "absent"], ["absent: there is no such file or directory", "results/latest", ".edn", "history.edn"]),
    (["verify", "gone"], ["gone points to away, which is gone", "results/latest"]),
    (["verify", "file"], ["file is a file, not a run directory", ".edn"]),
    (["verify", "full"], ["full is not a run directory", "no run.json", ".edn"]),
    (["verify", "old"], ["old is a sweep's directory", "old/cells"]),
    (["verify", "held"], ["held is not a run directory", "the newest is held/begun"]),
    (["verify", "absent.edn"], ["absent.edn: there is no such file"]),
    (["verify", "verdict.json"], ["verdict.json is not a history", "nothing in it has a process", "results/latest"]),
    (["verify", "pretty.json"], ["pretty.json is not a history"]),
    (["verify", "words.edn"], ["words.edn is not a history", "nothing in it has a process"]),
    (["verify", "json.edn"], ["json.edn is not a history", "it looks like JSON: rename it to .jsonl"]),
    (["verify", "edn.jsonl"], ["edn.jsonl is not a history", "it looks like EDN: rename it to .edn"]),
    (["verify", "vector.json"], ["vector.json is not a history", "it looks like EDN: rename it to .edn"]),
    (["verify", "two.jsonl"], ["line 2 is not a complete JSON object: the object continues to line 3", "one array"]),
    (["verify", "side.jsonl"], ["line 1 is not a complete JSON object (put each operation"]),
    (["verify", "cut.jsonl"], ["line 1 is not a complete JSON object (put each operation"]),
    (["verify", "sent.tar.gz"], ["sent.tar.gz is an archive: unpack it"]),
    (["verify", "lacking/history/final.arrow"], ["final.arrow is a file, not a run", "part of one: lacking"]),
    (["verify", "lacking/run.json"], ["lacking/run.json is not a history", "part of one: lacking"]),
    (["verify", "history.edn", "absent"], ["absent: there is no such file"]),
    (["verify", "history.edn", "--sub-via", "group"], ["--sub-via", "assign, subscribe", "'group'"]),
    (["verify", "history.edn", "--out", "file"], ["--out file", "not a directory"]),
    (["verify"], ["no run is given, and there is no results/latest", "gapless run", ".edn"]),
    (["report", "lacking"], ["lacking/run.json: settings.retries is absent", "restore the original"]),
    (["report", "torn"], ["torn/run.json: not valid JSON (line 1, column 2", "restore the original"]),
    (["report", "list"], ["list/run.json cannot be read", "JSON object", "restore the original"]),
    (["verify", "other"], ["other/run.json: schema is 1", "with the version that made it"]),
    (["report"], ["no run is given, and there is no results/latest", "gapless run"]),
    (["dump"], ["no run is given, and there is no results/latest", "gapless run"]),
    (["dump", "begun"], ["begun is a run directory without the brokers' data (see --keep)", "begun/history/*.arrow"]),
    (["runs"], ["there is no run in results", "gapless run", "--results"]),
    (["runs", "prune"], ["--keep"]),
    (["runs", "prune", "--keep", "-1"], ["--keep must be at least 0, not -1"]),
    (["runs", "prune", "--keep", "1", "--results", "full"], ["there is no run in", "full"]),
    (["runs", "index"], ["there is no run in", "--results"]),
    (["runs", "compare", "begun"], ["B"]),
    (["runs", "compare", "begun", "absent"], ["absent: there is no such file or directory"]),
    (["load"], ["no cluster given", "--host HOST:PORT"]),
    (["load", "--host", "http://localhost:9092"], ["not a URL", "here: --host localhost:9092"]),
    (["fault"], ["NAME", "'gapless fault --help'"]),
    (["fault", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["fault", "kill-leader"], ["no cluster is running in results/up", "gapless up --detach"]),
    (["report", "absent"], ["absent: there is no such file or directory", "results/latest"]),
    (["report", "full"], ["full is not a run directory", "results/latest"]),
    (["report", "edited"], ["edited/run.json: seed must be an integer"]),
    (["export", "absent"], ["absent: there is no such file or directory", "results/latest"]),
    (["export", "full", "--edn"], ["full is not a run directory"]),
    (["export", "edited", "--edn"], ["edited/run.json: seed must be an integer"]),
    (["export", "begun", "--edn"], ["begun has no history/*.arrow"]),
    (["run", "--readers", "confluent,kafka"], ["--readers kafka", "native, confluent"]),
    (["run", "--readers", ""], ["--readers is empty"]),
    (["run", "--final-readers", "java"], ["--final-readers java", "confluent, kafka-python, native"]),
    (["run", "--stalled-after", "0"], ["--stalled-after", "above 0"]),
    (["run", "--stalled-after", "soon"], ["--stalled-after must be a time such as 90s, 5m or 1h30m, or a", "'soon'"]),
    (["dump", "absent.log"], ["absent.log cannot be read: there is no such file"]),
    (["dump", "file"], ["file", ".timeindex"]),
    (["up", "--brokers", "0"], ["--brokers must be at least 1"]),
    (["up", "--broker-config", "num.partition=1"], ["num.partition", "num.partitions"]),
    (["up", "--defect", "lose-aked"], ["lose-aked", "lose-acked"]),
    (["up", "--data", "file"], ["file", "--data"]),
    (["up", "--data", "file", "--detach"], ["file", "--data"]),
    (["up", "--port", "70000"], ["--port", "65535"]),
    (["proxy", "--port", "-1"], ["--port must be at least 0, not -1"]),
    (["broker", "--config", "absent.properties"], ["--config absent.properties", "there is no such file"]),
    (
        ["broker", "--config", "wrong.properties"],
        ["--config wrong.properties", "broker.idd", "'broker.id'?"],
    ),
]

#: What is written for other tools, or by a slip.
BAD += [
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
    (
        ["run", "--bootstrap-server", "h:1"],
        ["--bootstrap-server; a run starts its own cluster; for yours, use --target kafka://HOST:PORT"],
    ),
    (["run", "--topic", "mine"], ["--topic; a run creates its own topic; --topic-config"]),
    (["start"], ["start needs the ID of a broker, such as 'gapless start 2'", "'gapless up --detach'"]),
    (["run", "--messages", "9"], ["--messages; use --rate and --time-limit instead"]),
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
    (["--colour"], ["unknown option --colour before the command", "'gapless run --seed 7'"]),
    (["--seed", "7", "run"], ["unknown option --seed before the command", "'gapless run --seed 7'"]),
    (["-t", "30"], ["unknown option -t before the command"]),
    (["run", "30"], ["run takes no argument '30' (see 'gapless run --help')"]),
    (["up", "3"], ["up takes no argument '3' (see 'gapless up --help')"]),
    (["status", "now"], ["status takes no argument 'now'"]),
    (["list", "faults", "checks"], ["list takes no argument 'checks'"]),
    (["run", "--rate"], ["--rate needs a value (see 'gapless run --help')"]),
    (["verify", "full", "--out"], ["--out needs a value (see 'gapless verify --help')"]),
    (["run", "--overlap=yes"], ["--overlap takes no value"]),
    (["run", "-q", "-v"], ["--quiet and --verbose are mutually exclusive; leave one of them out"]),
    (["sweep", "seeds", "-qv"], ["--quiet and --verbose are mutually exclusive"]),
    (["-v"], ["unknown option -v before the command"]),
    (["list", "links and things"], ["LIST", "'links and things'"]),
    (
        ["list", "faults", "--brokers", "5"],
        ["--brokers works only with 'gapless list links'", "leave it out"],
    ),
    (["list", "links", "--brokers", "0"], ["--brokers must be at least 1, not 0"]),
    (["serve", "--host", "0.0.0.0"], ["--host 0.0.0.0 is not a loopback address", "no access control", "tunnel"]),
    (["serve", "--results", "nowhere"], ["there is no directory nowhere", "'gapless run'", "--results"]),
]

#: Values that are not numbers, settings that belong to the run itself, and names that do not exist.
BAD += [
    *(
        (["run", option, value], [f"{option} must be an integer, not {value!r}", "'gapless run --help'"])
        for option, value in (
            *(("--seed", "x"), ("--users", "x"), ("--brokers", "three"), ("--partitions", "6p"), ("--rate", "10k")),
            *(("--record-bytes", "1KB"), ("--web-port", "http"), ("--load-processes", "two")),
            *(("--replication-factor", "3x"), ("--min-insync-replicas", "-")),
        )
    ),
    (["run", "--rate", "1.5"], ["--rate must be an integer, not 1.5"]),
    (["run", "--rate", "1e3"], ["--rate must be an integer, not 1e3"]),
    (["run", "--brokers", "1000"], ["--brokers must be at most 100, not 1000"]),
    (["run", "--partitions", "99999999"], ["--partitions must be at most 10000, not 99999999"]),
    (["run", "--users", "99999"], ["--users must be at most 10000, not 99999"]),
    (["run", "--load-processes", "101"], ["--load-processes must be at most 100, not 101"]),
    (["run", "--defect", "lose-acked", "--defect", "lose-acked:1"], ["--defect lose-acked is given twice"]),
    (["run", "--schedule", "minutes.yaml"], ["injection 1", "'at_s', a number of seconds, not '5m'"]),
    (["up", "--port", "65535"], ["--port 65535 leaves too few ports for 3 brokers", "give at most --port 65533"]),
    (
        ["up", "--metrics-port", "65534"],
        ["--metrics-port 65534 leaves too few ports for 3 brokers", "--metrics-port 65533"],
    ),
    (["up", "--brokers", "1000"], ["--brokers must be at most 100"]),
    (["sweep", "in-flight", "--rate", "99999999999"], ["GB and must leave 2 GB free", "--rate"]),
    (["run", "--partitions", "0"], ["--partitions must be at least 1, not 0"]),
    (["run", "--web-port", "99999"], ["--web-port must be at most 65535, not 99999"]),
    (["run", "--rate", "99999999999999999999"], ["GB and must leave 2 GB free", "--rate or --time-limit"]),
    (["up", "--brokers", "x"], ["--brokers must be an integer, not 'x' (see 'gapless up --help')"]),
    (["proxy", "--port", "8o"], ["--port must be an integer, not '8o' (see 'gapless proxy --help')"]),
    (["broker", "--seed", "x"], ["--seed must be an integer, not 'x' (see 'gapless broker --help')"]),
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
    (["run", "--rate="], ["--rate is empty"]),
    *(([command, ""], ["an argument is empty"]) for command in ("verify", "report", "export", "dump", "sweep")),
    (
        ["run", "--faults", "restart-zookeeper", "--zookeeper", "h:1"],
        ["--faults restart-zookeeper: a ZooKeeper given with --zookeeper"],
    ),
    (
        ["run", "--faults", "kill-leader", "--brokers", "1", "--replication-factor", "1"],
        ["--faults kill-leader: it needs 2 brokers to take effect, but there is --brokers 1; leave it out"],
    ),
    (["run", "--faults", "all,none"], ["'all' is a set of faults"]),
    (["run", "--faults", "basic,reset"], ["'basic' is a set of faults; give it alone"]),
    (["run", "--defect", "lose-acked:x"], ["'lose-acked' must be above 0 and at most 1, not 'x'"]),
    (["run", "--keep", "some"], ["--keep: 'some' is not one of 'all', 'failed', 'none'"]),
    *(
        (["run", "--broker-config", f"{key}=7"], [f"--broker-config {key}=7: gapless sets {key}"])
        for key in ("broker.id", "node.id", "listeners", "advertised.listeners", "log.dirs", "gapless.metrics.port")
    ),
    (["run", "--broker-config", "zookeeper.connect=h:1"], ["zookeeper.connect=h:1", "leave it out", "--zookeeper"]),
    (["up", "--broker-config", "broker.id=7"], ["--broker-config broker.id=7: gapless sets broker.id of every broker"]),
    (["up", "--broker-config", "listeners=SSL://:1"], ["--broker-config listeners=SSL://:1: gapless sets listeners"]),
    *(
        (["run", f"--{what}-config", "zzz=1"], [f"unknown {what} config key 'zzz'; docs/configuration.md lists all"])
        for what in ("broker", "topic", "producer", "consumer")
    ),
    (["run", "--zookeeper", ":2181"], ["--zookeeper takes HOST:PORT, not ':2181'"]),
    (["run", "--zookeeper", "127.0.0.1:99999"], ["--zookeeper takes HOST:PORT, not '127.0.0.1:99999'"]),
    (["up", "--zookeeper", "nowhere"], ["--zookeeper takes HOST:PORT, not 'nowhere'"]),
    (
        ["run", "--zookeeper", "127.0.0.1:1"],
        ["--zookeeper 127.0.0.1:1 cannot be reached: connection refused; start it"],
    ),
    (
        ["run", "--toxiproxy", "http://127.0.0.1:1"],
        ["127.0.0.1:1 cannot be reached: connection refused; start it first"],
    ),
    (["run", "--toxiproxy", "ftp://x"], ["--toxiproxy takes http://HOST:PORT, not 'ftp://x'"]),
    (["run", "--toxiproxy", "http://127.0.0.1:99999"], ["--toxiproxy takes http://HOST:PORT"]),
    (["sweep", "seeds", "--filter", "seed=99"], ["seed 99 of --filter is not one of", "(1, 2,", "use --seeds 99,"]),
    (["sweep", "seeds", "--filter", "seed"], ["--filter takes DIMENSION=VALUE", "'seed'"]),
    (["sweep", "seeds", "--seeds", "x"], ["--seeds takes a number of seeds", "'x'"]),
    (["sweep", "seeds", "--seeds", "1001"], ["--seeds 1001", "1 to 1000"]),
    (
        ["sweep", "--resume", "full", "--rate", "5"],
        ["--rate cannot be combined with --resume", "the options of the first start"],
    ),
    (
        ["sweep", "--resume", "full", "--minutes", "5"],
        ["--minutes cannot be combined with --resume", "the options of the first start"],
    ),
    (
        ["sweep", "--resume", "full", "--defect", "lose-acked"],
        ["--defect cannot be combined with --resume", "the options of the first start"],
    ),
    (
        ["sweep", "--resume", "full", "--time-limit", "0"],
        ["--time-limit cannot be combined with --resume", "the options of the first start"],
    ),
    (["up", "--detach", "--brokers", "0"], ["--brokers must be at least 1, not 0"]),
    (["up", "--profile", "fast"], ["unknown profile 'fast'; known profiles: chaos, kafka"]),
    (["uo"], ["unknown command 'uo'; did you mean 'up'? (see 'gapless --help')"]),
    (["dump", "emptied"], ["gapless: emptied holds no partitions yet"]),
    (["broker"], ["'broker.id' is missing; set it, as in broker.id=1"]),
    (["broker", "--config", "alone.properties"], ["'zookeeper.connect' is missing; set it, as in zookeeper.connect="]),
    (
        ["broker", "--config", "title.md"],
        ["--config title.md: line 2 of the properties is not key=value: 'Some"],
    ),
    (["broker", "--config", "latin.yaml"], ["--config latin.yaml: line 1: it is not UTF-8 text"]),
    (["broker", "--config", "full"], ["--config full: it cannot be read: it is a directory, not a file"]),
    (
        ["broker", "--config", "ssl.properties"],
        ["ssl.properties: listener 'SSL' uses the protocol SSL", "only PLAINTEXT"],
    ),
    (["proxy", "--config", "file"], ["--config file is not a list of proxies in Toxiproxy's JSON format"]),
    (["proxy", "--config", "full"], ["--config full cannot be read: it is a directory, not a file"]),
    (["proxy", "--host", "nohost.invalid"], ["nohost.invalid:8474 cannot be used: ", "--host"]),
    (["dump", "full"], ["full is not a partition directory and contains none", "name a broker's data directory"]),
    (["dump", "file", "--offsets", "5"], ["--offsets takes A..B, A.. or ..B, not 5"]),
    (["export", "begun", "--edn", "--jsonl"], ["begun has no history/*.arrow"]),
    (["verify", "begun", "--sub-via", "assign"], ["--sub-via", "work only with operation histories; none is given"]),
    (["verify", "begun", "--spark-master", "nonsense"], ["--spark-master takes local[N]", "'nonsense'"]),
]

#: What is no run that could be played again.
BAD += [
    (["replay"], ["RUN", "'gapless replay --help'"]),
    (["replay", "absent"], ["absent: there is no such file or directory", "results/latest"]),
    (["replay", "late.yaml"], ["late.yaml is a schedule, not a run", "run --schedule late.yaml"]),
    (["replay", ".", "--keep", "some"], ["--keep", "some"]),
    (["shrink"], ["RUN", "'gapless shrink --help'"]),
    (["shrink", "absent"], ["absent: there is no such file or directory"]),
    (["shrink", "absent", "--max-runs", "2"], ["--max-runs must be at least 3, not 2"]),
    (["shrink", "absent", "--tries", "0"], ["--tries must be at least 1, not 0"]),
]

BAD += [
    (["run", "--schedule", f"{name}.schedule", *beside], [f"--schedule {name}.schedule", *said])
    for name, (_, beside, said) in UNPLAYABLE.items()
]


def make_files(tmp_path: Path) -> None:
    """What the tables name: a file in the way, a full directory, and files that are not what is asked."""
    (tmp_path / "file").touch()
    (tmp_path / "title.md").write_text("# A title\nSome words\n")
    (tmp_path / "ssl.properties").write_text(
        "broker.id=1\nzookeeper.connect=127.0.0.1:1\nlisteners=SSL://127.0.0.1:0\n"
    )
    (tmp_path / "alone.properties").write_text("broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    (tmp_path / "kept" / "nodes" / "1" / "data").mkdir(parents=True)
    (tmp_path / "kept" / "run.json").touch()
    (tmp_path / "history.edn").touch()
    (tmp_path / "emptied").mkdir()
    (tmp_path / "emptied" / "meta.properties").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "broken.yaml").write_text("injections: [\n")
    (tmp_path / "other.yaml").write_text("- 1\n")
    (tmp_path / "latin.yaml").write_bytes(b"# f\xfcr\n")
    (tmp_path / "twice.yaml").write_text("seed: 1\ninjections: []\nseed: 2\n")
    (tmp_path / "late.yaml").write_text(
        "injections:\n- {at_s: 500.5, fault: pause-leader}\n- {at_s: 1, fault: kill-leader}\n"
    )
    for name, (injection, _, _) in UNPLAYABLE.items():
        (tmp_path / f"{name}.schedule").write_text(f"injections:\n- {{at_s: 1, {injection}}}\n")
    (tmp_path / "minutes.yaml").write_text("injections:\n- {at_s: 5m, fault: reset}\n")
    (tmp_path / "seed.yaml").write_text("seed: yes\ninjections: []\n")
    (tmp_path / "rare.yaml").write_text("value_bytes: {uniform: {least: 48, most: 2000000}}\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sweep.json").write_text('{"schema": 1, "sweep": "seeds", "wanted": {}}')
    (tmp_path / "gone").symlink_to("away")
    (tmp_path / "verdict.json").write_text('{"verdict": "valid", "checks": {}, "stats": {"process": 1}}')
    (tmp_path / "pretty.json").write_text(json.dumps({"verdict": "valid", "context": {"process": "x"}}, indent=2))
    (tmp_path / "words.edn").write_text("nothing happened\n")
    (tmp_path / "json.edn").write_text('{"process": 0, "type": "invoke"}\n')
    (tmp_path / "edn.jsonl").write_text("{:process 0, :type :invoke}\n")
    (tmp_path / "vector.json").write_text("[{:index 0 :process 0}]\n")
    (tmp_path / "two.jsonl").write_text('\n{"index": 1, "process": 0,\n "type": "ok"}\n')
    (tmp_path / "side.jsonl").write_text('{"process": 0} {"process": 1}\n')
    (tmp_path / "cut.jsonl").write_text('{"process": 0, "ty\n')
    whole = run_model().to_json()
    begun = json.dumps(whole)
    changed = {"edited": json.dumps({**whole, "seed": "one"}), "other": json.dumps({**whole, "schema": 1})}
    for name, text in {**changed, "held/begun": begun, "begun": begun, "torn": "{", "list": "[]"}.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").write_text(text)
    lacking = run_model().to_json()
    del lacking["settings"]["retries"]
    (tmp_path / "sent.tar.gz").touch()
    (tmp_path / "lacking" / "history").mkdir(parents=True)
    (tmp_path / "lacking" / "history" / "final.arrow").touch()
    (tmp_path / "lacking" / "run.json").write_text(json.dumps(lacking))
    (tmp_path / "wrong.properties").write_text("broker.idd=1\n")
