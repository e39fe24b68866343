"""Swarms: what may be away at once, what a seed draws, and the schedules that come of it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.commands.main import run_command
from chaos.experiment.asked import Asked
from chaos.experiment.command_line import asked_by, words
from chaos.experiment.errors import ExperimentError
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import plan, resolve
from chaos.experiment.swarmed import renamed
from chaos.experiment.verdict_settings import settings_of
from chaos.faults.catalogue import FAULTS
from chaos.schedules.kinds import FaultKind
from chaos.schedules.model import Injection, Schedule, to_yaml
from chaos.schedules.outages import ORDINARY, Limits, may_join
from chaos.schedules.swarm import draw, lay_out
from chaos.schedules.swarms import SWARMS
from chaos.sweeps import seeds
from chaos.sweeps.model import Wanted
from cluster.config import profiles
from loadgen.workloads import CATALOGUE

KILL = FaultKind("kill", (3.0, 5.0), 4.0)
CUT = FaultKind("cut", (2.0, 3.0), 2.0, "link")
DROP = FaultKind("drop", (0.5, 1.0), 2.0, "traffic")
KEEPER = FaultKind("keeper", (1.0, 2.0), 2.0, "zookeeper")
POWER = FaultKind("power", (3.0, 5.0), 5.0, "everything", loses=True)
FILES = FaultKind("files", (3.0, 5.0), 4.0, needs_sync=True)
ROLL = FaultKind("roll", (10.0, 12.0), 4.0, "everything")
MANY = Limits(down=3, at_once=4)
LOSING = Limits(down=2, at_once=3, beside_losses=True)


@pytest.mark.parametrize(
    ("group", "kind", "limits", "replicas", "may"),
    [
        ([KILL], KILL, ORDINARY, 3, False),
        ([KILL], CUT, ORDINARY, 3, True),
        ([KILL, CUT], CUT, ORDINARY, 3, False),
        ([KILL], KILL, MANY, 3, True),
        ([KILL, KILL, KILL], KILL, MANY, 5, False),
        ([KILL, KILL], KILL, replace(MANY, down=2), 5, False),
        ([KILL], KILL, MANY, 1, True),
        ([KILL], DROP, MANY, 3, False),
        ([CUT], DROP, MANY, 3, False),
        ([KEEPER], DROP, MANY, 3, True),
        ([KEEPER], KEEPER, MANY, 3, False),
        ([KILL, KEEPER], KILL, MANY, 3, True),
        ([ROLL], CUT, MANY, 3, False),
        ([KILL], ROLL, MANY, 3, False),
        ([POWER], KILL, MANY, 3, False),
        ([POWER], KILL, LOSING, 3, True),
        ([POWER], KILL, LOSING, 2, False),
        ([POWER], CUT, LOSING, 2, True),
        ([POWER, KILL], KILL, replace(LOSING, down=9), 3, False),
        ([POWER, KILL], KILL, replace(LOSING, down=9), 4, True),
        ([POWER], DROP, LOSING, 3, False),
        ([KILL], POWER, LOSING, 3, False),
        ([POWER], POWER, LOSING, 5, False),
        ([KILL], FILES, MANY, 3, False),
        ([POWER], FILES, LOSING, 3, False),
        ([CUT], FILES, MANY, 3, True),
        ([FILES], KILL, MANY, 3, True),
    ],
    ids=lambda value: (
        "+".join(each.name for each in value) if isinstance(value, list) else getattr(value, "name", None)
    ),
)
def test_what_may_be_away_at_once(
    group: list[FaultKind], kind: FaultKind, limits: Limits, replicas: int, may: bool
) -> None:
    """Brokers up to the limit; of the replicas of a record one must stay that loses nothing, whatever the limit is.

    What waits for full ISRs comes before what takes a broker, or not at all.
    """
    assert may_join(group, kind, limits, replicas) is may


def test_swarms_name_faults_of_the_catalogue() -> None:
    """A fault that was renamed would silently never be drawn."""
    for swarm in SWARMS.values():
        assert {*swarm.kinds, *swarm.without, *swarm.always} <= set(FAULTS), swarm.name
        assert all(swarm.has(name) for name in swarm.always)


SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.sampled_from(sorted(SWARMS)), st.sampled_from([60.0, 300.0]))
def test_a_schedule_keeps_to_the_limits_of_its_swarm(seed: int, name: str, limit_s: float) -> None:
    """Every kind that was drawn comes; every group holds the limits as a whole; there is room between groups."""
    swarm = SWARMS[name]
    kinds = [fault.kind() for fault in FAULTS.values() if swarm.has(fault.name)]
    drawn = draw(swarm, kinds, seed=seed, warmup_s=4.0, time_limit_s=limit_s)
    assert {*swarm.always} <= {*drawn.kinds} <= {kind.name for kind in kinds}
    assert swarm.least_at_once <= drawn.at_once <= swarm.limits.at_once
    how = {"seed": seed, "warmup_s": 4.0, "time_limit_s": limit_s, "partitions": 6, "replicas": 3}
    schedule = lay_out(drawn, kinds, swarm.limits, **how)
    assert set(schedule.kinds()) == set(drawn.kinds)
    assert to_yaml(schedule) == to_yaml(lay_out(drawn, kinds, swarm.limits, **how))
    by_name = {kind.name: kind for kind in kinds}
    groups: list[list[Injection]] = []
    for each in schedule.injections:
        assert each.at_s >= 4.0 and 0 <= each.target["partition"] < 6
        if not each.overlap:
            groups.append([])
        groups[-1].append(each)
    for group in groups:
        first, *others = group
        assert len(group) <= drawn.at_once
        assert all(first.at_s < each.at_s < first.at_s + first.duration_s for each in others)
        together = [by_name[each.fault] for each in group]
        assert sum(kind.takes_broker for kind in together) <= swarm.limits.down
        if any(kind.loses for kind in together):
            assert together[0].loses and sum(kind.takes_broker for kind in together) <= 2
    for before, after in pairwise(groups):
        ends_s = max(each.at_s + each.duration_s + by_name[each.fault].recovery_s for each in before)
        assert after[0].at_s >= ends_s - 0.02


def test_the_rule_of_one_broker_at_a_time_is_lifted_where_a_swarm_says_so() -> None:
    """Historic schedules take a second broker before the first is back, also beside a loss of power; others never."""

    def brokers_at_once(name: str) -> set[tuple[bool, int]]:
        found = set()
        for seed in range(20):
            experiment, _ = resolve(Asked(seed=seed, swarm=name, time_limit_s=300))
            groups: list[list[FaultKind]] = []
            for each in plan(experiment).injections:
                if not each.overlap:
                    groups.append([])
                groups[-1].append(FAULTS[each.fault].kind())
            found |= {(group[0].loses, sum(kind.takes_broker for kind in group)) for group in groups}
        return found

    assert {(False, 2), (True, 2)} <= brokers_at_once("historic")
    assert (False, 3) in brokers_at_once("harsh")
    assert max(count for _, count in brokers_at_once("survivable")) == 1


@given(SEEDS)
def test_one_more_fault_in_the_catalogue_changes_no_other_draw(seed: int) -> None:
    """Seeds that were kept go on meaning the same: each kind is drawn by a generator of its own."""
    swarm = SWARMS["survivable"]
    kinds = [FAULTS[name].kind() for name in ("kill-leader", "cut-link", "drop-packets", "slow-link", "reset")]
    long = {"seed": seed, "warmup_s": 4.0, "time_limit_s": 10_000.0}
    before = draw(swarm, kinds, **long)
    after = draw(swarm, [*kinds, FAULTS["isolate-broker"].kind()], **long)
    assert {name: weight for name, weight in after.weights.items() if name != "isolate-broker"} == before.weights
    assert replace(after, weights=before.weights) == before


def test_a_swarm_draws_settings_too() -> None:
    """Of the producers and the topic; they are in what the run works with, and in run.json; other seeds draw others."""
    seen = set()
    for seed in range(12):
        experiment, _ = resolve(Asked(seed=seed, swarm="survivable"))
        assert experiment.drawn is not None
        drawn = experiment.drawn
        assert experiment.producer_in_use["batch.size"] == int(drawn.producers["batch.size"])
        assert experiment.topic_config["segment.bytes"] == int(drawn.topic["segment.bytes"])
        assert experiment.acks == drawn.producers["acks"] == settings_of(experiment).acks
        assert experiment.to_json()["resolved"]["drawn"]["producers"] == drawn.producers
        assert all(f"{key}={value}" in drawn.line() for key, value in drawn.producers.items())
        seen.add(tuple(drawn.producers.items()))
    assert len(seen) > 8
    plain, _ = resolve(Asked(seed=1))
    assert plain.drawn is None and plain.to_json()["resolved"]["drawn"] is None


def test_what_was_asked_for_wins_over_what_is_drawn() -> None:
    """Also under its other name; and a workload's own compression."""
    given = ("max.in.flight=3", "queue.buffering.max.ms=7")
    asked = Asked(seed=2, swarm="harsh", producer_config=given, topic_config=("segment.bytes=4096",), acks="all")
    experiment, _ = resolve(asked)
    assert experiment.drawn is not None
    assert experiment.drawn.topic == {} and {*experiment.drawn.producers} == {"batch.size", "compression.type"}
    assert experiment.topic_config["segment.bytes"] == 4096
    assert experiment.producer_in_use["max.in.flight.requests.per.connection"] == 3
    compressed, _ = resolve(Asked(seed=2, swarm="harsh", workload="compressed"))
    assert compressed.producer_in_use["compression.type"] == "lz4"


@pytest.mark.parametrize("workload", CATALOGUE)
@pytest.mark.parametrize("name", SWARMS)
def test_every_workload_goes_with_every_swarm(name: str, workload: str) -> None:
    """No draw contradicts a workload, and its segments have room for its values."""
    for seed in range(6):
        for client in ("native", "confluent"):
            experiment, _ = resolve(Asked(seed=seed, swarm=name, workload=workload, client=client))
            assert set(plan(experiment).kinds()) == set(experiment.faults)
            assert experiment.topic_config["segment.bytes"] >= 4 * experiment.workload.sizes.most


def test_acknowledgements_of_a_leader_alone_are_not_drawn_beside_faults_that_lose_data() -> None:
    """What was never replicated is lost then, and no fault on record tells which records that were."""
    drawn = {}
    for seed in range(60):
        experiment, _ = resolve(Asked(seed=seed, swarm="survivable", time_limit_s=120))
        loses = any(FAULTS[name].loses_data or FAULTS[name].needs_idempotence for name in experiment.faults)
        drawn.setdefault(loses, set()).add(experiment.acks)
    assert drawn == {True: {"all"}, False: {"all", "1"}}


def test_what_a_swarm_draws_is_not_asked_for_beside_it() -> None:
    """Two sources of faults would contradict each other; a schedule takes their place, and the settings stay."""
    for more in ({"faults": "kill-leader"}, {"overlap": True}):
        with pytest.raises(ExperimentError, match=r"--swarm historic and --(faults|overlap) are mutually exclusive"):
            resolve(Asked(seed=1, swarm="historic", **more))
    with pytest.raises(ExperimentError, match="unknown swarm 'histric'; did you mean 'historic'"):
        resolve(Asked(seed=1, swarm="histric"))
    schedule = ScheduleFile(Path("schedule.yaml"), Schedule(1, (Injection(5.0, "kill-leader", 3.0),)))
    given, _ = resolve(Asked(seed=1, swarm="historic", schedule=schedule))
    drawn, _ = resolve(Asked(seed=1, swarm="historic"))
    assert plan(given) == schedule.schedule and given.faults == ()
    assert given.drawn is not None and drawn.drawn is not None
    assert given.drawn.producers == drawn.drawn.producers


def test_the_command_that_repeats_a_run_names_its_swarm_alone() -> None:
    """What it drew follows from the seed."""
    asked = asked_by({"seed": 7, "swarm": "historic"})
    assert words(asked) == ["run", "--seed", "7", "--swarm", "historic"]
    assert plan(resolve(asked)[0]) == plan(resolve(Asked(seed=7, swarm="historic"))[0])


def test_a_swarm_is_still_taken_for_a_profile_and_said_to_be_one() -> None:
    """The name that it had: the run is the same, its command has the new name, and a line says so."""
    old, said = renamed(asked_by({"seed": 7, "profile": "historic"}))
    assert old == asked_by({"seed": 7, "swarm": "historic"})
    assert said == ["--profile historic is deprecated: it is --swarm historic now"]
    assert renamed(Asked(seed=7, profile="kafka")) == (Asked(seed=7, profile="kafka"), [])
    with pytest.raises(ExperimentError, match="--swarm harsh is another"):
        renamed(Asked(seed=7, profile="historic", swarm="harsh"))
    with pytest.raises(ExperimentError, match="--swarm harsh needs --profile chaos"):
        resolve(Asked(seed=7, profile="kafka", swarm="harsh"))
    (cell,) = seeds.build(Wanted(seeds=(7,), profile="historic")).cells
    assert (cell.asked.swarm, cell.asked.profile) == ("historic", "chaos")


def test_a_profile_and_a_swarm_have_no_name_in_common() -> None:
    """One option, one kind of thing."""
    assert not set(SWARMS) & set(profiles.PROFILES)


def test_a_cluster_by_hand_has_no_swarm(capsys: pytest.CaptureFixture[str]) -> None:
    """It has no seed to draw from, and no schedule."""
    assert run_command(["up", "--profile", "historic"]) == 254
    assert "--profile historic is a swarm, for 'gapless run --swarm'" in capsys.readouterr().err


@pytest.mark.parametrize("name", FAULTS)
def test_what_waits_for_full_isrs_says_so(name: str) -> None:
    """Else it would be planned where it can only be skipped."""
    sources = [inspect.getsource(each) for each in FAULTS[name].__mro__ if each.__module__.startswith("chaos.faults.")]
    waits = any("await self._full_isrs()" in source for source in sources)
    assert FAULTS[name].needs_sync is waits
