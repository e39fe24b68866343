"""How options, shorthands and profiles become the settings of a run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.planned import impossible
from chaos.experiment.resolve import load_seconds, overrun, plan, resolve
from chaos.faults.catalogue import FAULTS, GROUPS, parse_faults
from chaos.schedules.model import Injection, Schedule
from chaos.schedules.swarms import SWARMS
from cluster.config.errors import ConfigError
from loadgen.settings import CLIENTS
from loadgen.workloads import find_workload
from tests.support.faults import among_replicas, of_closed_segments, of_coordinators, of_loads, of_zookeeper


def _given(*injections: Injection) -> ScheduleFile:
    """A schedule as the command line reads it."""
    return ScheduleFile(Path("schedule.yaml"), Schedule(1, injections))


EMPTY = _given()


def test_the_default_run_is_idempotent_with_basic_faults() -> None:
    """What a newcomer gets: acks=all, min.insync.replicas 2 of 3, every kind of fault that fits a minute."""
    settings, _ = resolve(Asked(seed=1))
    assert (settings.acks, settings.idempotence) == ("all", True)
    assert (settings.min_insync_replicas, settings.asked.replication_factor) == (2, 3)
    assert settings.faults == parse_faults("basic")
    assert settings.broker_config["zookeeper.session.timeout.ms"] == 2000
    assert settings.topic_config["retention.ms"] == -1
    assert set(plan(settings).kinds()) == set(settings.faults)


def test_faults_that_need_more_than_the_time_limit() -> None:
    """15 s with seven faults last 47 s, since each comes once: said beforehand, with the way to a shorter run."""
    short, _ = resolve(Asked(seed=2, time_limit_s=15))
    schedule = plan(short)
    last = schedule.injections[-1]
    assert load_seconds(short, schedule) == last.at_s + last.duration_s + FAULTS[last.fault].recovery_s > 45
    (line,) = overrun(short, schedule)
    needed = f"{load_seconds(short, schedule):.0f}"
    assert line == (
        f"the load will last about {needed} s, not the 15 s of --time-limit: 7 faults need it; "
        "ask for fewer with --faults"
    )
    for fits in (Asked(seed=1), Asked(seed=2), Asked(seed=2, time_limit_s=15, faults="none")):
        experiment, _ = resolve(fits)
        assert overrun(experiment, plan(experiment)) == []
    assert load_seconds(experiment, plan(experiment)) == 15
    late = resolve(Asked(seed=1, time_limit_s=15, schedule=_given(Injection(12, "rolling-restart", 3))))[0]
    assert "the fault needs it; ask for fewer with --schedule" in overrun(late, plan(late))[0]


def test_a_schedule_that_ends_after_the_time_limit_is_refused() -> None:
    """Up to the limit to the hundredth; beyond it the line names the injection and the limit that all of them need."""
    long, late = Injection(10.1, "cut-link", 4.9), Injection(30, "kill-leader", 3.2)
    resolve(Asked(seed=1, time_limit_s=15, schedule=_given(long)))
    for limit_s, says in (
        (14.9, "cut-link at 10.1 s lasts until 15 s, after the 14.9 s of --time-limit; give --time-limit 34s, or take"),
        (15, "schedule.yaml: kill-leader at 30 s begins after the 15 s of --time-limit; give --time-limit 34s"),
        (33, "kill-leader at 30 s lasts until 33.2 s, after the 33 s"),
    ):
        with pytest.raises(ExperimentError, match=says):
            resolve(Asked(seed=1, time_limit_s=limit_s, schedule=_given(long, late)))
    resolve(Asked(seed=1, time_limit_s=34, schedule=_given(long, late)))


def test_a_schedule_without_a_seed_is_played_with_that_of_the_run() -> None:
    """One that has a seed keeps it, and the run takes it too where none was given."""
    open_one = replace(EMPTY, schedule=Schedule(None, ()))
    assert plan(resolve(Asked(seed=7, schedule=open_one))[0]).seed == 7
    assert plan(resolve(Asked(seed=7, schedule=EMPTY))[0]).seed == 1


def test_faults_that_can_never_bite_are_left_out_of_groups_and_refused_by_name() -> None:
    """A run that could only be unknown is not begun; all and basic are what can be of them, with a line on the rest."""
    alone, warnings = resolve(Asked(seed=1, brokers=1, replication_factor=1))
    assert set(alone.faults) == {"cut-link", "drop-response", "drop-packets"}
    assert "--faults basic without kill-leader: it needs 2 brokers to take effect, but there is --brokers 1" in warnings
    single, warnings = resolve(Asked(seed=1, replication_factor=1, faults="all"))
    of_others = {*of_coordinators(), *of_closed_segments(), *of_loads(), "kill-producers"}
    assert set(GROUPS["all"]) - set(single.faults) == {*among_replicas(), *of_others} & {*GROUPS["all"]}
    assert {"kill-leader", "pause-leader", "rolling-restart", "power-loss"} < set(among_replicas())
    assert any("--replication-factor 1" in warning for warning in warnings)
    foreign, warnings = resolve(Asked(seed=1, zookeeper="h:1", faults="all"))
    assert set(GROUPS["all"]) - set(foreign.faults) == {*of_zookeeper(), *of_others}
    large, warnings = resolve(Asked(seed=1, faults="all"))
    assert set(GROUPS["all"]) - set(large.faults) == of_others
    processes, segments = warnings
    assert "without kill-producers" in processes and "--load-processes 2" in processes
    assert "--topic-config segment.bytes=131072" in segments
    small = Asked(seed=1, faults="all", topic_config=("segment.bytes=131072",), load_processes=2)
    assert resolve(small) == (resolve(small)[0], [])
    transactional, warnings = resolve(replace(small, workload="transactions"))
    left_out = {name for name in of_coordinators() if FAULTS[name].needs_coordinator == "group"}
    assert set(GROUPS["all"]) - set(transactional.faults) == {*left_out, *of_loads("members")} and warnings == []
    pipeline, _ = resolve(replace(small, workload="pipeline"))
    assert set(GROUPS["all"]) - set(pipeline.faults) == set(of_loads("producers"))
    for asked, says in (
        (
            Asked(seed=1, faults="hold-markers", workload="bank", toxiproxy="http://h:1"),
            "--faults hold-markers: it needs gapless's own proxy, and --toxiproxy names another",
        ),
        (Asked(seed=1, faults="kill-producers"), "--faults kill-producers: it kills one of several processes"),
        (
            Asked(seed=1, faults="kill-readers", readers=("native",)),
            "--faults kill-readers: it kills the readers of one",
        ),
        (Asked(seed=1, brokers=1, replication_factor=1, faults="kill-leader"), "--faults kill-leader: it needs 2 br"),
        (
            Asked(seed=1, replication_factor=1, faults="reset,pause-leader"),
            "--faults pause-leader: it needs 2 replicas",
        ),
        (Asked(seed=1, zookeeper="h:1", faults="pause-zookeeper"), "--faults pause-zookeeper: a ZooKeeper given"),
        (
            Asked(seed=1, faults="kill-leader,hold-markers", workload="small"),
            "--faults hold-markers: it needs a workload with transactions, and workload small has none; use --workload "
            "transactions, or leave it out",
        ),
        (
            Asked(seed=1, faults="pause-producers", workload="pipeline"),
            "it needs a workload with transactional producers, and workload pipeline has none",
        ),
        (
            Asked(seed=1, faults="crash-members", workload="bank"),
            "it needs a workload with members of a group, and workload bank has none; use --workload groups, or leave",
        ),
        (
            Asked(seed=1, faults="kill-group-coordinator"),
            "it needs a workload with groups, and workload steady has none",
        ),
    ):
        with pytest.raises(ExperimentError, match=says):
            resolve(asked)


def test_weak_acks_turn_idempotence_off() -> None:
    """--acks 1 alone is a wish; with --idempotence true it is a contradiction."""
    settings, _ = resolve(Asked(seed=1, acks="1"))
    assert (settings.acks, settings.idempotence) == ("1", False)
    with pytest.raises(ConfigError, match="contradicts"):
        resolve(Asked(seed=1, acks="1", idempotence=True))


def test_the_general_way_wins_over_the_profile_and_must_agree_with_shorthands() -> None:
    """--producer-config acks=1 is --acks 1; both with different values are refused."""
    settings, _ = resolve(Asked(seed=1, producer_config=["acks=1"], broker_config=["replica.lag.time.max.ms=9000"]))
    assert settings.acks == "1"
    assert settings.broker_config["replica.lag.time.max.ms"] == 9000
    with pytest.raises(ExperimentError, match="--acks all contradicts acks=1"):
        resolve(Asked(seed=1, acks="all", producer_config=["acks=1"]))


def test_a_workload_decides_and_options_must_agree() -> None:
    """Rate, sizes, partitions, producers and compression are the workload's; an option that says else is refused."""
    settings, _ = resolve(Asked(seed=1, workload="crowded"))
    assert (settings.partitions, settings.users, settings.workload.rate) == (6, 24, 1200)
    settings, _ = resolve(Asked(seed=1, workload="compressed", partitions=2))
    assert (settings.partitions, settings.users) == (2, 2)
    assert settings.producer_config["compression.type"] == "lz4"
    for asked, says in (
        (Asked(seed=1, workload="small", rate=5), "--rate 5 contradicts rate 10000"),
        (Asked(seed=1, workload="small", record_bytes=99), "--record-bytes 99 contradicts value_bytes 100"),
        (Asked(seed=1, workload="crowded", users=3), "--users 3 contradicts streams 24"),
        (Asked(seed=1, workload="compressed", producer_config=["compression.type=gzip"]), "compression"),
    ):
        with pytest.raises(ValueError, match=says):
            resolve(asked)


def test_a_retention_that_outlasts_the_run_is_taken() -> None:
    """The time limit and half an hour, or none."""
    for value in ("1860000", "-1"):
        settings, _ = resolve(Asked(seed=1, topic_config=[f"retention.ms={value}"]))
        assert settings.topic_config["retention.ms"] == int(value)


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (Asked(seed=1, brokers=2), "--replication-factor 3"),
        (Asked(seed=1, min_insync_replicas=4), "--min-insync-replicas 4"),
        (Asked(seed=1, broker_config=["replica.lag.tme.max.ms=1"]), "replica.lag.time.max.ms"),
        (Asked(seed=1, topic_config=["retention"]), "KEY=VALUE"),
        (Asked(seed=1, topic_config=["cleanup.policy=compact"]), "cleanup.policy"),
        (Asked(seed=1, broker_config=["log.cleanup.policy=compact,delete"]), "cleanup.policy"),
        (Asked(seed=1, topic_config=["retention.bytes=1000000"]), "retention.bytes"),
        (Asked(seed=1, topic_config=["retention.ms=1859999"]), "retention.ms"),
        (Asked(seed=1, faults="kil-leader"), "kill-leader"),
        (Asked(seed=1, profile="kaos"), "chaos"),
        (Asked(seed=1, time_limit_s=2), "--time-limit"),
        (Asked(seed=1, producer_config=["bootstrap.servers=b:1"]), "--producer-config bootstrap.servers=b:1"),
        (Asked(seed=1, consumer_config=["client.id=me"]), "--consumer-config client.id=me"),
        (Asked(seed=1, producer_config=["transactional.id=t"]), "producers has its own"),
        (Asked(seed=1, workload="transactions", acks="1"), "workload transactions has transactional producers"),
        (Asked(seed=1, workload="transactions", idempotence=False), "needs 'enable.idempotence' true"),
        (Asked(seed=1, workload="transactions", users=7), "--users 7 contradicts streams 12"),
        (
            Asked(seed=1, workload="transactions", producer_config=["delivery.timeout.ms=30000"]),
            "delivery.timeout.ms 30000 is above transaction.timeout.ms 15000",
        ),
        (Asked(seed=1, rate=0), "rate"),
        (Asked(seed=1, record_bytes=47), "48"),
        (Asked(seed=1, client="nativ"), "--client nativ"),
        (Asked(seed=1, users=2, load_processes=3), "--load-processes 3"),
        (Asked(seed=1, workload="transactions", load_processes=5), "at least 5 producers, not 4"),
        (Asked(seed=1, readers=("confluent", "kafka-python")), "--readers kafka-python .* native, confluent"),
        (Asked(seed=1, readers=()), "--readers is empty"),
        (Asked(seed=1, readers=("native", "native")), "--readers names native twice"),
        (Asked(seed=1, final_readers=("java",)), "--final-readers java .* confluent, kafka-python, native"),
        (Asked(seed=1, stalled_after_s=0.0), "--stalled-after must be above 0 s"),
        (Asked(seed=1, time_limit_s=float("nan")), "--time-limit must be longer"),
        (Asked(seed=1, time_limit_s=float("inf")), "at most 720h"),
        (Asked(seed=1, stalled_after_s=float("nan")), "--stalled-after must be above 0 s"),
        (Asked(seed=1, users=0), "--users must be at least 1, not 0"),
        (Asked(seed=1, faults="all", schedule=EMPTY), "mutually exclusive"),
        (Asked(seed=1, overlap=True, schedule=EMPTY), "--overlap"),
        (Asked(seed=1, schedule=_given(Injection(1, "no-such", 1))), "no-such"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_thing_named(asked: Asked, names: str) -> None:
    """One clear line before anything starts."""
    with pytest.raises(ValueError, match=names):
        resolve(asked)


@pytest.mark.parametrize("client", CLIENTS)
def test_transactional_producers_have_times_of_their_own_and_readers_their_isolation(client: str) -> None:
    """Shorter than the profile's, and changed as any other; no isolation level of the profile reaches the readers."""
    plain, _ = resolve(Asked(seed=1, client=client))
    own, _ = resolve(Asked(seed=1, client=client, workload="transactions"))
    assert (plain.producer_config["delivery.timeout.ms"], own.producer_config["delivery.timeout.ms"]) == (
        120_000, 15_000,
    )  # fmt: skip
    assert own.producer_config.as_text()["transaction.timeout.ms"] == "15000"
    assert "isolation.level" not in own.consumer_config.as_text()
    longer = ["transaction.timeout.ms=60000", "delivery.timeout.ms=60000"]
    asked, _ = resolve(Asked(seed=1, client=client, workload="transactions", producer_config=longer))
    assert asked.producer_config["transaction.timeout.ms"] == asked.producer_config["delivery.timeout.ms"] == 60_000
    level = ["isolation.level=read_uncommitted"]
    asked, _ = resolve(Asked(seed=1, client=client, workload="transactions", consumer_config=level))
    assert asked.consumer_config.as_text()["isolation.level"] == "read_uncommitted"


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.by_name_alone])
def test_only_its_name_draws_a_fault_that_loses_what_was_acknowledged(name: str) -> None:
    """No set of faults has it, nor the schedule of any swarm; by its name, it is in the run."""
    assert all(name not in faults for faults in GROUPS.values())
    for swarm in SWARMS:
        for seed in range(8):
            assert name not in resolve(Asked(seed=seed, swarm=swarm, time_limit_s=3600))[0].faults
    assert resolve(Asked(seed=1, faults=name))[0].faults == (name,)


def test_an_unclean_election_is_ordered_only_where_all_have_what_is_acknowledged() -> None:
    """With acks=1, a verdict could not tell what it lost from what any leader's death loses."""
    for asked in (Asked(seed=1, faults="elect-unclean", acks="1"), Asked(seed=1, faults="elect-unclean", acks="0")):
        with pytest.raises(ExperimentError, match="only with --acks all"):
            resolve(asked)
    with pytest.raises(ExperimentError, match="only with --acks all"):
        resolve(Asked(seed=1, faults="elect-unclean", producer_config=("acks=1", "enable.idempotence=false")))


def test_a_fault_of_one_system_is_refused_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of one process's memory is Linux's."""
    monkeypatch.setattr(sys, "platform", "darwin")
    why = impossible("memory-pressure", Asked(seed=1), find_workload("steady"))
    assert why == "it can be made on linux alone, and this is darwin"
    monkeypatch.setattr(sys, "platform", "linux")
    assert impossible("memory-pressure", Asked(seed=1), find_workload("steady")) is None
