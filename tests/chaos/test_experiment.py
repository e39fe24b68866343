"""The declaration of an experiment: what each option is, what is made of it, and what the verdict takes from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from chaos.commands.session import first_record
from chaos.experiment.asked import Asked
from chaos.experiment.choices import FINAL_READERS
from chaos.experiment.command_line import FIELDS, asked_by, with_options, words
from chaos.experiment.declaration import Field, Panel
from chaos.experiment.forms import DURATION, FLAG, NAMES, REPEATED, SCHEDULE, TRUTH, ScheduleFile
from chaos.experiment.resolve import plan, resolve
from chaos.experiment.verdict_settings import decided, settings_of
from chaos.schedules.model import Injection, Schedule, to_yaml
from loadgen.settings import FINAL_CLIENTS
from verifier.evidence.run_model import DefectSetting, RunModel, RunSettings
from verifier.excuses.expectation import RETRY, Expectation

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> ScheduleFile:
    """A schedule that stands in a file."""
    made = Schedule(5, (Injection(6.0, "kill-leader", 3.0, {"partition": 2}),))
    path = tmp_path_factory.mktemp("given") / "a schedule.yaml"
    path.write_text(to_yaml(made))
    return ScheduleFile(path, made)


def values(field: Field, schedule: ScheduleFile) -> st.SearchStrategy[Any]:
    """What may be asked for by an option of that form; None where it may be left open."""
    declared, form = field.declared, field.form
    if field.name == "scenario":
        # it decides other fields: tests/chaos/test_scenarios.py
        return st.none()
    if declared.among:
        chosen = st.lists(st.sampled_from(declared.among), min_size=1, unique=True).map(tuple)
    elif form is SCHEDULE:
        chosen = st.just(schedule)
    elif form in (FLAG, TRUTH):
        chosen = st.booleans()
    elif form is REPEATED:
        chosen = st.lists(TEXTS, max_size=3).map(tuple)
    elif form.kind is int:
        chosen = st.integers(declared.least, declared.most)
    elif form is DURATION:
        chosen = st.floats(0, 1e7).map(lambda seconds: round(seconds, 9))
    elif form.kind is str:
        chosen = TEXTS
    else:
        chosen = st.sampled_from([each.value for each in form.kind])
    return chosen | st.none() if field.default is None else chosen


def another(field: Field) -> Any:
    """A value that is not the default."""
    if field.declared.among:
        return field.declared.among[:1]
    if field.name == "scenario":
        return "zombie-leader"
    numbers_and_texts = {int: 77, float: 7.5, bool: True, str: "x", list[str]: ("x",)}
    others = {**numbers_and_texts, Path: ScheduleFile(Path("x"), Schedule(1, ()))}
    return True if field.form is TRUTH else others.get(field.form.kind, "all")


def parser() -> Callable[[list[str]], Asked]:
    """The command line of ``gapless run``, up to what was asked."""
    parsed: list[Mapping[str, Any]] = []

    def run(given: Mapping[str, Any]) -> int:
        parsed.append(given)
        return 0

    app = typer.Typer(add_completion=False)
    app.command("run")(with_options(run))
    command = typer.main.get_command(app)

    def parse(arguments: list[str]) -> Asked:
        assert arguments[0] == "run"
        assert command(arguments[1:], standalone_mode=False) == 0
        return asked_by(parsed.pop())

    return parse


PARSE = parser()


@given(data=st.data())
def test_what_is_asked_survives_the_command_line_and_back(data: st.DataObject, schedule: ScheduleFile) -> None:
    """Every declared option, whatever its value: words ask for the same again, and are the same words again.

    What is not of the run is left out of them, unless everything is wanted.
    """
    asked = Asked(**{name: data.draw(values(field, schedule), name) for name, field in FIELDS.items()})
    whole = words(asked, everything=True)
    assert PARSE(whole) == asked
    assert words(PARSE(whole), everything=True) == whole
    outside = {name: field.default for name, field in FIELDS.items() if field.declared.outside_repro}
    repro = words(PARSE(whole))
    assert PARSE(repro) == replace(asked, **outside)
    assert words(PARSE(repro)) == repro


def test_the_seed_is_the_one_given_or_the_schedules_or_a_fresh_one(schedule: ScheduleFile, tmp_path: Path) -> None:
    """A schedule that is played again without --seed has the same seed again."""
    unseeded = tmp_path / "unseeded.yaml"
    unseeded.write_text("injections: []\n")
    for options, seed in (
        ({"seed": 9, "schedule": schedule.path}, 9),
        ({"seed": None, "schedule": schedule.path}, 5),
        ({"seed": None, "schedule": unseeded}, 77),
        ({"seed": None, "schedule": None}, 77),
    ):
        assert asked_by(options, lambda: 77).seed == seed


def test_a_control_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever we are installed and run; ``repro`` has the name, and a file of that name goes first."""
    monkeypatch.chdir(tmp_path)
    asked = PARSE(["run", "--acks", "1", "--time-limit", "22", "--schedule", "acks-1-loses"])
    assert asked.schedule is not None
    assert [each.fault for each in asked.schedule.schedule.injections] == ["cut-link", "kill-leader"]
    resolve(asked)
    assert PARSE(words(asked, everything=True)) == asked and "acks-1-loses" in words(asked)
    Path("acks-1-loses").write_text("injections: []\n")
    assert asked_by({"seed": 3, "schedule": Path("acks-1-loses")}).schedule.schedule.injections == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_every_field_is_an_option_with_its_help(field: Field) -> None:
    """A name of its own, a sentence, a panel; bounds that are numbers; in repro, or a reason why not."""
    assert field.option.startswith("--")
    assert [each.name for each in FIELDS.values() if each.option == field.option] == [field.name]
    assert field.declared.help.endswith(".") and field.declared.panel in Panel
    assert (field.declared.least is None and field.declared.most is None) or field.form.kind in (int, float)
    assert field.form is NAMES or not field.declared.among
    assert field.default is not MISSING or field.name == "seed"
    changed = replace(Asked(seed=7), **{field.name: another(field)})
    assert getattr(changed, field.name) != field.default
    assert (field.option in words(changed)) == (not field.declared.outside_repro)
    assert field.option in words(changed, everything=True)


def test_the_verdict_depends_on_what_is_declared_and_on_nothing_else() -> None:
    """Each field of the verifier's settings is decided by exactly one option, and has the type that it is read with."""
    assert set(decided()) == {each.name for each in fields(RunSettings)}
    for asked in (Asked(seed=1), Asked(seed=1, client="native", profile="kafka", workload="crowded")):
        settings = settings_of(resolve(asked)[0])
        assert RunSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            {"producer_config": ("retries=9", "delivery.timeout.ms=50000")},
            {"retries": 9, "producer/delivery.timeout.ms": 50_000},
        ),
        ({"producer_config": ("message.send.max.retries=9",)}, {"retries": 9}),
        ({"producer_config": ("max.in.flight=2",)}, {"max_in_flight": 2}),
        ({"acks": "1"}, {"acks": "1", "idempotence": False}),
        ({"producer_config": ("acks=-1",)}, {"acks": "all", "idempotence": True}),
        ({"client": "native", "profile": "kafka"}, {"producer/delivery.timeout.ms": 120_000, "max_in_flight": 5}),
        # The load's own default, not librdkafka's 300 s.
        (
            {"profile": "kafka"},
            {"producer/delivery.timeout.ms": 60_000, "topic/retention.ms": 604_800_000, "session_timeout_ms": 18_000},
        ),
        ({"broker_config": ("log.flush.interval.messages=7",)}, {"topic/flush.messages": 7}),
        ({"broker_config": ("log.flush.scheduler.interval.ms=7",)}, {"topic/flush.ms": 7}),
        ({"topic_config": ("unclean.leader.election.enable=TRUE",)}, {"unclean_leader_election": True}),
        ({"broker_config": ("unclean.leader.election.enable=true",)}, {"unclean_leader_election": True}),
        (
            {"broker_config": ("log.message.timestamp.type=LogAppendTime",)},
            {"topic/message.timestamp.type": "LogAppendTime"},
        ),
        (
            {"broker_config": ("log.retention.hours=400000",), "profile": "kafka"},
            {"topic/retention.ms": 1_440_000_000_000},
        ),
        ({"topic_config": ("min.insync.replicas=1",)}, {"topic/min.insync.replicas": 1}),
        ({"workload": "crowded"}, {"users": 24, "partitions": 6, "rate": 1200.0}),
        ({"consumer_config": ("isolation.level=read_committed",)}, {"consumer/isolation.level": "read_committed"}),
        (
            {"readers": ("native",), "final_readers": ("native",)},
            {"readers": ("native",), "final_readers": ("native",)},
        ),
        ({"load_processes": 2, "stalled_after_s": 3.5}, {"load_processes": 2, "stalled_after_s": 3.5}),
    ],
)
def test_what_is_resolved_reaches_the_verdict(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """Whichever way it was said: by a shorthand, an alias, a profile, a broker's key or the client's own default.

    What no verdict depends on (``topic/flush.ms``) reaches the record of the experiment.
    """
    experiment, _ = resolve(Asked(seed=1, **asked))
    settings, record = settings_of(experiment), experiment.to_json()["resolved"]

    def said(name: str) -> object:
        config, _, key = name.rpartition("/")
        return record[config][key] if config else getattr(settings, name)

    assert {name: said(name) for name in expected} == expected


def test_without_retries_nothing_may_be_appended_again() -> None:
    """``retries=0`` reaches the matrix: it turns idempotence off, and excuses neither duplicates nor another order as
    other retries do. librdkafka sends some batches again without counting a retry, and says so there."""

    def expectation(client: str, *config: str) -> Expectation:
        return Expectation(settings_of(resolve(Asked(seed=1, client=client, producer_config=config))[0]))

    none = expectation("native", "retries=0")
    some = expectation("native", "retries=1", "enable.idempotence=false")
    for check, cause in (("duplicate", "broker"), ("log-duplicate", "broker"), ("log-reorder", "values")):
        assert none.reason(check, cause, RETRY) is None
        assert some.reason(check, cause, RETRY) is not None
    said = expectation("confluent", "retries=0").reason("duplicate", "broker", RETRY)
    assert said is not None and "even with retries=0" in said


def test_the_names_of_clients_are_those_of_the_load() -> None:
    """The declaration names a client that it does not import."""
    assert set(FINAL_READERS) == set(FINAL_CLIENTS)


def test_the_whole_experiment_is_written() -> None:
    """Everything that was asked, and every key of every configuration, typed; as JSON."""
    experiment, _ = resolve(Asked(seed=1, defects=("lose-acked:0.25",), broker_config=("num.partitions=3",)))
    written = json.loads(json.dumps(experiment.to_json(), allow_nan=False))
    assert set(written["asked"]) == set(FIELDS)
    assert written["asked"]["broker_config"] == ["num.partitions=3"]
    resolved = written["resolved"]
    assert resolved["broker"]["num.partitions"] == 3
    assert resolved["broker"]["replica.lag.time.max.ms"] == 4000
    assert resolved["topic"]["cleanup.policy"] == ["delete"]
    assert resolved["producer"]["enable.idempotence"] is True
    assert resolved["defects"] == [{"name": "lose-acked", "probability": 0.25}]


def test_a_run_that_has_just_begun_says_all_that_is_read() -> None:
    """What comes to be known later is there and empty: an interrupt at any moment leaves a run.json that is read."""
    experiment, _ = resolve(Asked(seed=3, faults="none", defects=("lose-acked:0.25",)))
    first = first_record(experiment, plan(experiment), "gapless run", now_ns=5)
    assert RunModel.from_json(json.loads(json.dumps(first.to_json(), allow_nan=False))) == first
    assert (first.seed, first.settings, first.faults_requested) == (3, settings_of(experiment), [])
    assert first.defects == [DefectSetting("lose-acked", 0.25)]


def test_a_schedule_that_was_given_is_written_whole(schedule: ScheduleFile) -> None:
    """With the file that it came from, which may change afterwards."""
    experiment, _ = resolve(Asked(seed=1, schedule=schedule))
    written = json.loads(json.dumps(experiment.to_json()))["asked"]["schedule"]
    assert written["path"] == str(schedule.path)
    assert [each["fault"] for each in written["injections"]] == ["kill-leader"]
