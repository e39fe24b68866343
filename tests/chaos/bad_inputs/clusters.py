"""Arguments that cannot be done, of commands on a cluster that is up or is to be started: a table."""

from __future__ import annotations

from tests.chaos.bad_inputs.model import BadInput

CLUSTERS: list[BadInput] = [
    (["groups"], ["list, describe, reset-offsets or delete", "'gapless groups --help'"]),
    (["groups", "lst"], ["lst", "list"]),
    (["groups", "list"], ["no cluster is running in results/up", "--bootstrap-server"]),
    (["groups", "list", "--bootstrap-server", "x"], ["--bootstrap-server", "not a host:port address: 'x'"]),
    (["groups", "describe"], ["groups describe needs GROUP...", "(see 'gapless groups describe --help')"]),
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
    (["up", "--defect", "lose-acked,refuse-batches"], ["names several defects", "--defect lose-acked --defect refuse"]),
    (["load"], ["no cluster given", "--host HOST:PORT"]),
    (["load", "--host", "http://localhost:9092"], ["not a URL", "here: --host localhost:9092"]),
    (["fault"], ["NAME", "'gapless fault --help'"]),
    (["fault", "kill-leadr"], ["kill-leadr", "kill-leader"]),
    (["fault", "kill-leader"], ["no cluster is running in results/up", "gapless up --detach"]),
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
    (["start"], ["start needs the ID of a broker, such as 'gapless start 2'", "'gapless up --detach'"]),
    (["up", "--port", "65535"], ["--port 65535 leaves too few ports for 3 brokers", "give at most --port 65533"]),
    (
        ["up", "--metrics-port", "65534"],
        ["--metrics-port 65534 leaves too few ports for 3 brokers", "--metrics-port 65533"],
    ),
    (["up", "--brokers", "1000"], ["--brokers must be at most 100"]),
    (["up", "--brokers", "x"], ["--brokers must be an integer, not 'x' (see 'gapless up --help')"]),
    (["proxy", "--port", "8o"], ["--port must be an integer, not '8o' (see 'gapless proxy --help')"]),
    (["broker", "--seed", "x"], ["--seed must be an integer, not 'x' (see 'gapless broker --help')"]),
    (["up", "--broker-config", "broker.id=7"], ["--broker-config broker.id=7: gapless sets broker.id of every broker"]),
    (["up", "--broker-config", "listeners=SSL://:1"], ["--broker-config listeners=SSL://:1: gapless sets listeners"]),
    (["up", "--zookeeper", "nowhere"], ["--zookeeper takes HOST:PORT, not 'nowhere'"]),
    (["up", "--detach", "--brokers", "0"], ["--brokers must be at least 1, not 0"]),
    (["up", "--profile", "fast"], ["unknown profile 'fast'; known profiles: chaos, kafka"]),
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
]
