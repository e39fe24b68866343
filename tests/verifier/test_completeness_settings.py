"""The settings that a verdict depends on: said several times, by several writers, and each time the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.conductor.load import Load
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import plan, resolve
from chaos.experiment.verdict_settings import settings_of
from tests.support.closed import agreeing
from tests.support.settings import experiment_of, settings
from tests.support.stories import clean
from tests.verifier.test_completeness import CLOSING, FACTS, RUN
from tests.verifier.test_verdict import a_run
from verifier.closing.closing import Closing, gather
from verifier.completeness import incomplete
from verifier.completeness.settings import STANDS
from verifier.doubts import ALL, Doubt
from verifier.evidence.run_model import RunModel, RunSettings, TopicSpec

#: Another value of each setting.
ANOTHER: dict[str, Any] = {
    "acks": "1", "idempotence": False, "max_in_flight": 1, "retries": 0, "client": "native", "brokers": 5,
    "partitions": 2, "replication_factor": 2, "unclean_leader_election": True, "unknown_producer": "kafka",
    "replica_lag_time_max_ms": 900_000, "session_timeout_ms": 900_000, "producer_id_expiration_ms": 5,
    "rate": 1.0, "users": 7, "load_processes": 2, "readers": ("confluent",), "final_readers": ("confluent",),
    "stalled_after_s": 900.0, "target": "kafka://h:1", "replica_dirs": ("1=/d",),
}  # fmt: skip


def doubts(run: RunModel, closed: Closing = CLOSING) -> list[Doubt]:
    return [doubt for doubt in incomplete(run, FACTS, closed) if doubt.blinds == ALL]


def plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_a_run_that_says_the_same_everywhere_has_no_doubt() -> None:
    """Settings that agree everywhere raise no doubt: the base of all cases below."""
    assert incomplete(RUN, FACTS, CLOSING) == []


@pytest.mark.parametrize("name", [each.name for each in fields(RunSettings)])
def test_a_setting_is_the_one_that_the_experiment_came_to(name: str) -> None:
    """``settings`` alone was changed: nothing is judged by it, and both values are named."""
    run = replace(RUN, settings=replace(RUN.settings, **{name: ANOTHER[name]}))
    reasons = [doubt.reason for doubt in doubts(run)]
    path = ".".join(STANDS[name][0])
    was = plain(getattr(RUN.settings, name))
    assert f"run.json has settings.{name} {plain(ANOTHER[name])!r}, and {path} {was!r}" in reasons


@pytest.mark.parametrize("name", [each.name for each in fields(RunSettings)])
def test_what_the_experiment_does_not_say_is_said(name: str) -> None:
    """A place of the experiment that is not there agrees with nothing."""
    run = replace(RUN, experiment=deepcopy(RUN.experiment))
    *folders, last = STANDS[name][0][1:]
    inner = run.experiment
    for folder in folders:
        inner = inner[folder]
    del inner[last]
    assert f"run.json does not say {'.'.join(STANDS[name][0])}" in [doubt.reason for doubt in doubts(run)]


@pytest.mark.parametrize("broken", [{}, {"asked": 1, "resolved": []}])
def test_an_experiment_of_another_shape_is_no_error(broken: dict[str, Any]) -> None:
    """An experiment of another shape confirms nothing: doubts, but no exception."""
    assert len(doubts(replace(RUN, experiment=broken))) == len(STANDS) + 1  # and no faults


@pytest.mark.parametrize(("name", "asked"), [("acks", "0"), ("idempotence", False), ("rate", 7), ("users", 9)])
def test_an_option_that_was_given_is_what_it_came_to(name: str, asked: object) -> None:
    """An option says what the resolved configuration says, where it was given."""
    run = replace(RUN, experiment=deepcopy(RUN.experiment))
    run.experiment["asked"][name] = asked
    (reason,) = [doubt.reason for doubt in doubts(run)]
    assert (
        reason == f"run.json has settings.{name} {getattr(RUN.settings, name)!r}, and experiment.asked.{name} {asked!r}"
    )


LOAD: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "acks": (lambda load: load["producer_config"].update({"acks": "1"}), "producer_config.acks '1'"),
    "no acks": (lambda load: load["producer_config"].pop("acks"), ""),
    "idempotence": (
        lambda load: load["producer_config"].update({"enable.idempotence": "false"}),
        "producer_config.enable.idempotence 'false'",
    ),
    "in flight": (
        lambda load: load["producer_config"].update({"max.in.flight.requests.per.connection": "1"}),
        "producer_config.max.in.flight.requests.per.connection '1'",
    ),
    "retries": (lambda load: load["producer_config"].update({"retries": "0"}), "producer_config.retries '0'"),
    "client": (lambda load: load.update(client="native"), "client 'native'"),
    "no client": (lambda load: load.pop("client"), "loadgen/settings.json does not say client"),
    "rate": (lambda load: load.update(rate=3.0), "rate 3.0"),
    "partitions": (lambda load: load.update(partitions=9), "partitions 9"),
    "producers": (lambda load: load.update(producers=9), "producers 9"),
    "processes": (lambda load: load.update(processes=9), "processes 9"),
    "readers": (lambda load: load.update(readers=["confluent"]), "readers ['confluent']"),
    "final readers": (lambda load: load.update(final_readers=[]), "final_readers []"),
    "another run": (lambda load: load.update(run_id=5), "loadgen/settings.json is of the run 5, not of 77"),
    "another topic": (lambda load: load.update(topic="x"), "loadgen/settings.json writes to x"),
    "no configuration": (lambda load: load.update(producer_config=3), "does not say producer_config"),
}


@pytest.mark.parametrize("name", LOAD)
def test_the_load_was_handed_what_the_run_was_asked(name: str) -> None:
    """``loadgen/settings.json`` is what the load processes read: it is another witness."""
    change, reason = LOAD[name]
    load = deepcopy(dict(CLOSING.load or {}))
    change(load)
    reasons = [doubt.reason for doubt in doubts(RUN, replace(CLOSING, load=load))]
    if not reason:  # both clients wait for all unless they are told otherwise
        assert reasons == []
        return
    assert len(reasons) == 1 and reason in reasons[0], reasons


@pytest.mark.parametrize("text", [None, "[]", "{", "{}"])
def test_the_settings_of_the_load_are_there(tmp_path: Path, text: str | None) -> None:
    """Without them, or where they cannot be read, a witness is missing."""
    story = clean()
    directory = story.write(tmp_path)
    path = directory.loadgen_dir / "settings.json"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    found = [doubt.reason for doubt in incomplete(story.model(), FACTS, gather(directory, story.model()))]
    assert any(reason.startswith("loadgen/settings.json") for reason in found), found


def test_a_producer_without_idempotence_has_no_id() -> None:
    """The histories are another witness: who was given ids was idempotent, and waited for all."""
    run = a_run(settings=settings(idempotence=False, acks="1", rate=0.0))
    whole = agreeing(run, CLOSING)
    assert doubts(run, whole) == []
    (doubt,) = doubts(run, replace(whole, accounts=CLOSING.accounts))
    assert (
        doubt.reason == "run.json has settings.idempotence False, and records were acknowledged to producers with ids"
    )


def test_idempotence_waits_for_all() -> None:
    """There is no idempotent producer with acks=1: one of the two was changed."""
    run = a_run(settings=settings(acks="1", rate=0.0))
    (doubt,) = doubts(run, agreeing(run, CLOSING))
    assert doubt.reason == "run.json has settings.acks '1', and settings.idempotence True"


def test_nobody_tells_an_offset_to_who_does_not_wait() -> None:
    """With acks=0 there is no answer, and no offset in a history."""
    run = a_run(settings=settings(acks="0", idempotence=False, rate=0.0))
    whole = agreeing(run, CLOSING)
    assert doubts(run, whole) == []
    with_offsets = tuple(replace(each, has_offsets=True) for each in whole.accounts)
    (doubt,) = doubts(run, replace(whole, accounts=with_offsets))
    assert doubt.reason == "run.json has settings.acks '0', and acknowledgements have offsets"


@pytest.mark.parametrize(
    "config",
    [{"unclean.leader.election.enable": "true"}, {"retention.ms": "5"}, {"cleanup.policy": "compact"}, {}],
)
def test_the_topic_was_made_as_the_experiment_says(config: dict[str, str]) -> None:
    """The topic's configuration as it was created, key by key. What decides a verdict must be there."""
    made = {**RUN.topics[0].config, **config} if config else {}
    run = replace(RUN, topics=[TopicSpec("t", 1, 3, RUN.topics[0].topic_id, config=made)])
    reasons = [doubt.reason for doubt in doubts(run)]
    named = config or {"retention.ms": "", "retention.bytes": "", "cleanup.policy": ""}
    assert all(any(f"experiment.resolved.topic.{key}" in reason for reason in reasons) for key in named), reasons


@pytest.mark.parametrize("by_schedule", [False, True])
@pytest.mark.parametrize(
    ("requested", "asked"), [(["kill-leader"], []), ([], ["kill-leader"]), (["cut-link"], ["cut-link", "kill-leader"])]
)
def test_the_faults_are_those_that_were_asked_for(requested: list[str], asked: list[str], by_schedule: bool) -> None:
    """A kind whose name was taken out is not missed if it never bites; one that was added excuses what nobody did."""
    run = replace(RUN, faults_requested=requested, experiment=deepcopy(RUN.experiment))
    run.experiment["resolved"]["faults"] = [] if by_schedule else asked
    if by_schedule:
        run.experiment["asked"]["schedule"] = {"path": "x", "injections": [{"fault": fault} for fault in asked]}
    (doubt,) = doubts(run)
    said, wanted = (", ".join(names) or "none" for names in (requested, asked))
    assert doubt.reason == f"run.json has faults_requested {said}, but the experiment asked for {wanted}"
    assert doubts(replace(run, faults_requested=[*asked, *asked])) == []


@pytest.mark.parametrize(
    "asked",
    [
        Asked(seed=1),
        Asked(seed=1, client="native", profile="kafka", workload="crowded"),
        Asked(seed=1, acks="1", rate=50, users=12, partitions=3, load_processes=2, final_readers=("native",)),
        Asked(seed=1, acks="0", client="native", producer_config=("retries=4",)),
        Asked(seed=1, producer_config=("acks=-1", "max.in.flight=2", "message.send.max.retries=9")),
        Asked(seed=1, idempotence=False, topic_config=("unclean.leader.election.enable=true",)),
        Asked(seed=1, broker_config=("gapless.unknown.producer=kafka", "replica.lag.time.max.ms=9000")),
        Asked(seed=1, workload="unlimited"),
    ],
    ids=lambda asked: "-".join(map(str, (asked.client, asked.acks, asked.workload, asked.profile))),
)
def test_every_setting_stands_where_the_verifier_looks(asked: Asked) -> None:
    """The verifier's table of places, against the experiments that the command line makes."""
    experiment, _ = resolve(asked)
    record = json.loads(json.dumps(experiment.to_json()))
    found = settings_of(experiment)
    assert set(STANDS) == {each.name for each in fields(RunSettings)}
    run = replace(RUN, settings=found, experiment=record, faults_requested=list(plan(experiment).kinds()))
    assert [
        doubt.reason for doubt in doubts(run) if "experiment." in doubt.reason and ".topic." not in doubt.reason
    ] == []
    assert experiment_of(found).keys() == record.keys()
    here: Any = SimpleNamespace(topology=SimpleNamespace(bootstrap=lambda group: f"{group}:1"))
    nothing: Any = None
    load = json.loads(json.dumps(asdict(Load(experiment, nothing, here, RUN.run_id)._load_settings())))
    reasons = [doubt.reason for doubt in doubts(run, replace(CLOSING, load=load))]
    assert [reason for reason in reasons if ", and loadgen/settings.json" in reason or "does not say" in reason] == []
