"""``--target`` and what belongs to it: the forms, what excludes what, and what a run takes from the cluster."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.commands.foreign import fitted
from chaos.conductor import target_look
from chaos.conductor.target_look import SeenTarget, settings_of_brokers
from chaos.exits import BadRequest
from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.planned import impossible
from chaos.experiment.resolve import resolve
from chaos.experiment.target_options import replica_directories, target_addresses
from chaos.experiment.verdict_settings import settings_of
from chaos.faults.catalogue import FAULTS
from cluster.client.cluster_view import ClusterView
from loadgen.workloads import find_workload

TARGET = "kafka://h:9092,[::1]:9093"
SETTINGS = {"replica.lag.time.max.ms": "30000", "zookeeper.session.timeout.ms": "9000"}


def asked(**changes):
    return Asked(**{"seed": 3, "target": TARGET, "faults": "none", **changes})


def test_addresses_are_read():
    """The addresses of a target stand behind kafka://; anything else is refused in one line that says the form."""
    assert target_addresses(TARGET) == ["h:9092", "[::1]:9093"]
    assert target_addresses("kafka://h:1/") == ["h:1"]
    for wrong in ("h:9092", "http://h:1", "kafka://", "kafka://h", "kafka://h:0", "kafka://h:1,"):
        with pytest.raises(ExperimentError, match="--target takes kafka://HOST:PORT"):
            target_addresses(wrong)


def test_replica_directories_are_read():
    """ID=DIR, each broker once; a path may have an equals sign in it."""
    assert replica_directories(asked(replica_dirs=("1=/a=b", "2=c"))) == {1: Path("/a=b"), 2: Path("c")}
    for wrong in (("1",), ("=d",), ("1=",), ("x=/d",)):
        with pytest.raises(ExperimentError, match="takes ID=DIR"):
            replica_directories(asked(replica_dirs=wrong))
    with pytest.raises(ExperimentError, match="broker 1 twice"):
        replica_directories(asked(replica_dirs=("1=a", "1=b")))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"target": None, "replica_dirs": ("1=/d",)}, "--replica-dir works only with --target"),
        ({"target": None, "nodes": "n.yaml"}, "--nodes works only with --target"),
        ({"defects": ("lose-acked",)}, "--defect works only with brokers that gapless starts"),
        ({"zookeeper": "h:1"}, "--zookeeper works only with brokers that gapless starts"),
        ({"workload": "groups"}, "has a consumer group, whose offsets would stay"),
        ({"workload": "pipeline"}, "has a consumer group, whose offsets would stay"),
        ({"faults": "kill-leader"}, "--faults kill-leader: it needs the brokers' processes: give --nodes FILE"),
        ({"faults": "isolate-broker"}, "--faults isolate-broker: it breaks links between brokers"),
        ({"faults": "drop-response", "toxiproxy": "http://h:1"}, "shows only in gapless's own proxy"),
    ],
)
def test_what_a_target_has_not_is_refused(changes, why):
    """One line names the option or the fault, and the fix."""
    given = {**changes}
    with pytest.raises(ExperimentError, match=why):
        resolve(Asked(seed=3, **{"target": TARGET, "faults": "none", **given}))


def test_a_set_of_faults_keeps_those_that_reach():
    """Of a set that was asked for, what needs more than the target shows is left out, and said."""
    experiment, warnings = resolve(asked(faults="basic"))
    assert experiment.faults == ("cut-link", "drop-response", "drop-packets")
    assert any("without kill-leader: it needs the brokers' processes" in line for line in warnings)
    with_nodes, _ = resolve(asked(faults="basic", nodes="n.yaml"))
    assert set(with_nodes.faults) == {*FAULTS_OF_BASIC, "kill-leader", "pause-leader", "kill-controller"}


FAULTS_OF_BASIC = {"cut-link", "drop-response", "drop-packets"}
#: What every fault must reach: a new one must say it, and whoever changes one must mean it.
ON_CLIENTS = {
    *("cut-link", "drop-packets", "reset", "slow-link", "drop-response", "leader-with-followers"),
    *("jitter", "bandwidth", "slicer", "refuse", "flapping", "slow-close"),
    *("delay-request", "duplicate-request", "cut-frame", "close-on"),
    *("delay-end-txn", "repeat-end-txn", "drop-end-txn-response"),
    *("pause-producers", "pause-members", "crash-members", "restart-members", "kill-producers", "kill-readers"),
}
ON_PROCESSES = {
    *("kill-leader", "kill-follower", "kill-controller", "pause-leader", "starve-cpu"),
    *("kill-all", "kill-majority", "restart-storm", "double-failover"),
    *("kill-transaction-coordinator", "pause-transaction-coordinator"),
    *("kill-group-coordinator", "pause-group-coordinator"),
}
OUT_OF_REACH = {
    "links between brokers or to ZooKeeper": {
        *("isolate-broker", "halves", "bridge", "ring", "leader-with-clients", "zookeeper-from-one", "expire-session"),
        *("hold-markers", "delay-markers"),
    },
    "ZooKeeper, and with --target gapless did not start it": {"pause-zookeeper", "restart-zookeeper"},
    "the disk, clock or memory of a broker": {
        *("power-loss", "truncate-tail", "full-disk", "disk-error", "slow-disk", "lose-checkpoint", "lose-index"),
        *("bit-flip", "clock-jump", "clock-drift", "memory-pressure"),
    },
    "shows only in journals and on disks": {
        *("reassign-partitions", "elect-preferred", "elect-unclean", "alter-config")
    },
    "it makes topics beside the load's": {"add-partitions", "create-delete-topic"},
    "--nodes says only how they are killed": {"rolling-restart"},
    "it removes a broker's data": {"kill-and-wipe"},
}


def test_every_fault_says_what_it_must_reach():
    """What only breaks clients or their links, or ends and pauses processes, can be done to a cluster of others."""
    assert {name for name, fault in FAULTS.items() if fault.reach == "clients"} == ON_CLIENTS
    assert {name for name, fault in FAULTS.items() if fault.reach == "processes"} == ON_PROCESSES
    others = [name for names in OUT_OF_REACH.values() for name in names]
    assert sorted([*ON_CLIENTS, *ON_PROCESSES, *others]) == sorted(FAULTS)


@pytest.mark.parametrize(
    ("words", "name"), [(words, name) for words, names in OUT_OF_REACH.items() for name in sorted(names)]
)
def test_a_fault_that_cannot_reach_is_refused_with_its_own_reason(words, name):
    """In one line, with and without --nodes; what the faults of a load need besides is no part of it."""
    workload = SimpleNamespace(is_transactional=True, members={"native": 3, "transform": True}, name="all")
    for nodes in (None, "n.yaml"):
        why = impossible(name, asked(nodes=nodes), workload)
        assert why is not None and words in why and "\n" not in why


#: There is no load there that they could hit.
ON_GROUPS = {
    name for name, fault in FAULTS.items() if fault.needs_coordinator == "group" or fault.needs_load == "members"
}


@pytest.mark.parametrize("name", sorted(ON_GROUPS))
def test_a_fault_on_groups_is_refused_for_its_workload(name):
    """Whoever asks for it is not told to use a workload that is refused, too."""
    for workload in ("steady", "groups"):
        why = impossible(name, asked(nodes="n.yaml"), find_workload(workload))
        assert why == "it needs a workload with a consumer group, and such workloads are refused with --target"
    assert impossible(name, Asked(seed=3), find_workload("groups")) is None


@pytest.mark.parametrize("name", sorted((ON_CLIENTS | ON_PROCESSES) - ON_GROUPS))
def test_a_fault_that_reaches_is_not_refused(name):
    """On clients, nothing else is needed; on processes, --nodes is."""
    workload = SimpleNamespace(is_transactional=True, members={"native": 3, "transform": True}, name="all")
    kinds = {"load_processes": 2}
    with_nodes = impossible(name, asked(nodes="n.yaml", **kinds), workload)
    without = impossible(name, asked(**kinds), workload)
    assert with_nodes is None
    assert (without is None) is (name in ON_CLIENTS)


@pytest.mark.parametrize("workload", ["transactions", "bank"])
def test_transactions_are_run_there(workload):
    """What their producers and readers saw is judged without the coordinators' logs."""
    experiment, _ = resolve(asked(workload=workload, faults="delay-end-txn"))
    assert experiment.workload.is_transactional and experiment.faults == ("delay-end-txn",)


def test_a_run_has_a_topic_of_its_own():
    """Others use the cluster too: the topic has the seed in its name, and the verifier knows whose cluster it is."""
    experiment, _ = resolve(asked(replica_dirs=("1=/d",)))
    assert experiment.topic == "gapless-3" and experiment.to_json()["resolved"]["topic_name"] == "gapless-3"
    settings = settings_of(experiment)
    assert (settings.target, settings.replica_dirs) == (TARGET, ("1=/d",))
    assert settings_of(resolve(Asked(seed=3))[0]).target is None


def test_a_run_takes_brokers_and_settings_from_the_cluster(tmp_path):
    """Their number and what decides excuses; what contradicts the cluster is refused before anything starts."""
    found = SeenTarget({1: "h:1", 4: "h:2"}, SETTINGS, frozenset(("gapless-8",)))
    taken = fitted(asked(), found)
    assert taken.brokers == 2
    settings = settings_of(resolve(Asked(seed=3, target=TARGET, replication_factor=2, faults="none",
                                         brokers=taken.brokers, broker_config=taken.broker_config))[0])  # fmt: skip
    assert (settings.replica_lag_time_max_ms, settings.session_timeout_ms) == (30_000, 9_000)
    for changes, why in (
        ({"brokers": 5}, "--brokers 5: the cluster of --target has 2"),
        ({"seed": 8}, "already has a topic gapless-8"),
        ({"replica_dirs": (f"2={tmp_path}",)}, "the cluster has brokers 1, 4"),
        ({"replica_dirs": (f"4={tmp_path}/none",)}, "there is no such directory"),
    ):
        with pytest.raises(BadRequest, match=why):
            fitted(asked(**changes), found)
    places = [tmp_path / name for name in ("one", "four", "link")]
    for place, text in zip(places, ("version=1\nnode.id=1\n", "#Fri\nversion=0\nbroker.id=4\n"), strict=False):
        place.mkdir()
        (place / "meta.properties").write_text(text)
    one, four, link = places
    link.symlink_to(tmp_path)
    assert fitted(asked(replica_dirs=(f"1={one}", f"4={four}")), found).brokers == 2
    for dirs, why in (
        ((f"1={four}",), "its meta.properties names broker 4"),
        ((f"1={one}", f"4={one}"), "its meta.properties names broker 1"),
        ((f"1={tmp_path}", f"4={link}"), "this directory was also given for broker 1"),
    ):
        with pytest.raises(BadRequest, match=why):
            fitted(asked(replica_dirs=dirs), found)
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("nodes: {1: {pid_file: p, start: s}}")
    with pytest.raises(BadRequest, match="does not name broker 4"):
        fitted(asked(nodes=str(nodes)), found)


def test_a_directory_of_another_cluster_is_refused(tmp_path):
    """Broker ids are the same in every cluster: what is laid beside the log must be of this one, where both say so."""
    place = tmp_path / "one"
    place.mkdir()
    dirs = asked(replica_dirs=(f"1={place}",))
    for cluster_id, noted, why in (
        ("this", "cluster.id=this\n", None),
        ("this", "", None),
        (None, "cluster.id=other\n", None),
        ("this", "cluster.id=other\n", "names cluster other, and --target is this; give a directory of this cluster"),
    ):
        (place / "meta.properties").write_text(f"version=0\nbroker.id=1\n{noted}")
        found = SeenTarget({1: "h:1"}, SETTINGS, frozenset(), cluster_id)
        with pytest.raises(BadRequest, match=why) if why else nullcontext():
            assert fitted(dirs, found).brokers == 1


def test_the_look_at_a_target_learns_which_cluster_it_is(monkeypatch):
    """As Metadata has it: None of a broker that does not say it."""

    class Admin:
        def __init__(self, *_):
            pass

        async def metadata(self):
            return ClusterView("this", 1, {1: SimpleNamespace(host="h", port=1)}, {})

        async def config(self, *_):
            return {}

        async def close(self):
            pass

    monkeypatch.setattr(target_look, "AsyncAdmin", Admin)
    assert asyncio.run(target_look.look(["h:1"], None)).cluster_id == "this"


def test_settings_of_other_brokers_are_understood():
    """KRaft names its session otherwise, and a broker that is not ours treats unknown producers as Kafka does."""
    assert settings_of_brokers({"broker.session.timeout.ms": "9000", "x": "1", "replica.lag.time.max.ms": None}) == {
        "zookeeper.session.timeout.ms": "9000",
        "gapless.unknown.producer": "kafka",
    }
    assert settings_of_brokers({"gapless.unknown.producer": "gapless"}) == {"gapless.unknown.producer": "gapless"}
