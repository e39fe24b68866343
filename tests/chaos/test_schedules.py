"""Schedules: the YAML form and the seeded generator."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.faults.catalogue import FAULTS, UnknownFault, parse_faults
from chaos.schedules.generator import generate
from chaos.schedules.model import Injection, Schedule, ScheduleError, from_yaml, to_yaml

KINDS = [fault.kind() for fault in FAULTS.values()]


@given(
    st.lists(
        st.builds(
            Injection,
            st.floats(0, 600),
            st.sampled_from(sorted(FAULTS)),
            st.floats(0, 60),
            st.dictionaries(st.sampled_from(["partition", "link"]), st.integers(0, 9)),
            st.dictionaries(st.sampled_from(["lossless"]), st.booleans()),
            st.booleans(),
        )
    ),
    st.integers(0, 2**32) | st.none(),
)
def test_yaml_round_trip(injections: list[Injection], seed: int | None) -> None:
    """What is written is read again, in the order of times."""
    schedule = Schedule(seed, tuple(sorted(injections, key=lambda each: each.at_s)))
    assert from_yaml(to_yaml(schedule)) == schedule


@given(st.integers(0, 2**32), st.sets(st.sampled_from(sorted(FAULTS)), min_size=1), st.floats(10, 600))
def test_generated_schedules_have_every_kind_and_do_not_overlap(seed: int, names: set[str], limit_s: float) -> None:
    """Each kind asked for comes; each injection starts after the one before had time to heal; a seed repeats."""
    kinds = [kind for kind in KINDS if kind.name in names]
    schedule = generate(kinds, seed=seed, warmup_s=4.0, time_limit_s=limit_s, partitions=6)
    assert set(schedule.kinds()) == names
    assert schedule == generate(kinds, seed=seed, warmup_s=4.0, time_limit_s=limit_s, partitions=6)
    room_s = {kind.name: kind.recovery_s for kind in kinds}
    for one, after in zip(schedule.injections, schedule.injections[1:], strict=False):
        assert after.at_s >= one.at_s + one.duration_s + room_s[one.fault] - 0.02
    for each in schedule.injections:
        assert each.at_s >= 4.0
        assert 0 <= each.target["partition"] < 6


@given(st.integers(0, 2**32))
def test_composed_schedules_overlap_only_what_leaves_something_to_observe(seed: int) -> None:
    """Two at once, never two brokers or two times ZooKeeper, nothing beside a rolling restart; room to heal after.

    A fault that bites in traffic comes beside nothing that stops it: a link that is cut carries no response.
    """
    kinds = {kind.name: kind for kind in KINDS}
    schedule = generate(KINDS, seed=seed, warmup_s=4.0, time_limit_s=500.0, partitions=6, overlap=True)
    assert set(schedule.kinds()) == set(FAULTS)
    assert sum(each.overlap for each in schedule.injections) >= 3
    assert [each.at_s for each in schedule.injections] == sorted(each.at_s for each in schedule.injections)
    free_s = 0.0
    for one, after in zip([None, *schedule.injections], schedule.injections, strict=False):
        if after.overlap:
            assert one is not None
            assert not one.overlap
            assert one.at_s < after.at_s < one.at_s + one.duration_s
            hit = [kinds[one.fault].hits, kinds[after.fault].hits]
            assert "everything" not in hit
            assert sorted(hit) not in (["broker", "broker"], ["zookeeper", "zookeeper"])
            assert sorted(hit) not in (["broker", "traffic"], ["link", "traffic"]), "what is to bite may not flow"
        else:
            assert after.at_s >= free_s - 0.02
        free_s = max(free_s, after.at_s + after.duration_s + kinds[after.fault].recovery_s)


@given(st.integers(0, 2**32))
def test_a_default_minute_kills_two_leaders_and_breaks_five_times(seed: int) -> None:
    """The first thing a newcomer runs must be worth its minute."""
    basic = [FAULTS[name].kind() for name in parse_faults("basic")]
    schedule = generate(basic, seed=seed, warmup_s=4.0, time_limit_s=60.0, partitions=6)
    assert len(schedule.injections) >= 7
    assert sum(each.fault == "kill-leader" for each in schedule.injections) >= 2
    assert schedule.injections[-1].at_s < 66.0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[]", "mapping"),
        ("injections: {}", "list"),
        ("{seed: 1.5, injections: []}", "'seed' of the schedule must be an integer, not 1.5"),
        ("{seed: true, injections: []}", "must be an integer, not True; without it, it is the run's"),
        ("{injections: [{fault: reset, when: 1}]}", "unknown key 'when'; use one of at_s, fault, duration_s"),
        ("{injections: [], sed: 1}", "'sed'"),
        ("{injections: [3]}", "injection 1"),
        ("{injections: [{fault: kill-leader}]}", "'at_s'"),
        ("{injections: [{fault: kill-leader, at_s: -1}]}", "'at_s'"),
        ("{injections: [{fault: kill-leader, at_s: 1, duration: 3}]}", "'duration'"),
        ("{injections: [{at_s: 1}]}", "'fault'"),
        ("{injections: [{fault: kill-leader, at_s: 1, overlap: 3}]}", "'overlap'"),
        ("{injections: [{fault: kill-leader, at_s: .nan}]}", "'at_s'"),
        ("{injections: [], 1: 2, b: 3}", "unknown key 1 in"),
        ("{injections: [{at_s: 1, fault: kill-leader, 1: 2, b: 3}]}", "unknown key 1"),
        ("{injections: [{at_s: 1, fault: kill-leader,\n at_s: 2}]}", "^line 2: key 'at_s' is given twice"),
        ("{injections: [", "not YAML"),
    ],
)
def test_a_bad_schedule_names_what_is_wrong(text: str, names: str) -> None:
    """One clear line that names the entry."""
    with pytest.raises(ScheduleError, match=names):
        from_yaml(text)


def test_faults_are_parsed_and_the_nearest_is_suggested() -> None:
    """``all``, ``none``, a list; a misspelt one is told the nearest."""
    assert parse_faults("none") == ()
    assert set(parse_faults("basic")) < set(FAULTS)
    assert set(FAULTS) - set(parse_faults("all")) == {name for name, each in FAULTS.items() if each.by_name_alone}
    assert parse_faults("kill-leader, cut-link,kill-leader") == ("kill-leader", "cut-link")
    with pytest.raises(UnknownFault, match="kill-leader"):
        parse_faults("kil-leader")


def test_what_faults_declare_is_what_they_read() -> None:
    """Every target and parameter that the code of a fault asks for may be said in a schedule, and no other."""
    for fault in FAULTS.values():
        sources = "".join(
            inspect.getsource(each) for each in fault.__mro__[:-1] if each.__module__.startswith("chaos.")
        )
        assert set(re.findall(r'target\.get\("(\w+)"', sources)) <= {*fault.targets}, fault.name
        assert set(re.findall(r'parameters\.get\("(\w+)"', sources)) == {rule.name for rule in fault.accepts}, (
            fault.name
        )


@given(st.integers(0, 2**32), st.floats(10, 600))
def test_what_can_bite_only_once_comes_once(seed: int, limit_s: float) -> None:
    """Alone it ends the schedule; among others these go on without it."""
    once = [kind for kind in KINDS if kind.once]
    assert {kind.name for kind in once} == {"kill-producers", "kill-readers"}
    alone = generate(once[:1], seed=seed, warmup_s=4.0, time_limit_s=limit_s, partitions=6)
    assert [each.fault for each in alone.injections] == [once[0].name]
    leader = next(kind for kind in KINDS if kind.name == "kill-leader")
    mixed = generate([*once, leader], seed=seed, warmup_s=4.0, time_limit_s=limit_s, partitions=6)
    names = [each.fault for each in mixed.injections]
    assert all(names.count(kind.name) == 1 for kind in once) and "kill-leader" in names
