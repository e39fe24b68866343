"""run.json: what was written is read, strangers are tolerated, what is absent or of a wrong type is named."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.settings import run_model
from tests.support.settings import settings as run_settings
from verifier.evidence.declared import DeclaredEvidence, DeclaredProcess
from verifier.evidence.run_model import (
    ChildProcess,
    DefectSetting,
    FinalPartition,
    HarnessHealth,
    PhaseSpan,
    RunModel,
    RunModelError,
    RunSettings,
    TopicSpec,
)

numbers = st.integers(-1, 2**63 - 1)
texts = st.text(max_size=8)
names = st.lists(texts, max_size=2).map(tuple)
finals = st.builds(
    FinalPartition, texts, numbers, numbers, numbers, numbers, numbers, st.dictionaries(numbers, numbers, max_size=3),
    st.none() | numbers, texts,
)  # fmt: skip
runs = st.builds(
    RunModel,
    name=texts,
    seed=numbers,
    run_id=numbers,
    started=texts,
    started_ns=numbers,
    settings=st.builds(run_settings, acks=texts, idempotence=st.booleans(), rate=st.floats(0, 1e6), readers=names),
    experiment=st.dictionaries(texts, st.none() | numbers | texts, max_size=2),
    versions=st.dictionaries(texts, texts, max_size=2),
    repro=texts,
    topology=st.dictionaries(texts, numbers, max_size=2),
    evidence=st.builds(
        DeclaredEvidence,
        processes=st.lists(st.builds(DeclaredProcess, texts, texts, texts, numbers, numbers), max_size=2),
        brokers=st.lists(numbers, max_size=2),
        replicas=st.dictionaries(texts, st.lists(numbers, max_size=2), max_size=2),
        planned_faults=numbers,
    ),
    final_topic_ids=st.dictionaries(texts, texts, max_size=2),
    interrupted=st.booleans(),
    problems=st.lists(texts, max_size=2),
    topics=st.lists(st.builds(TopicSpec, texts, numbers, numbers, texts, st.dictionaries(texts, texts)), max_size=2),
    phases=st.lists(st.builds(PhaseSpan, texts, numbers, st.none() | numbers), max_size=2),
    defects=st.lists(st.builds(DefectSetting, texts, st.floats(0, 1)), max_size=2),
    faults_requested=st.lists(texts, max_size=2),
    final=st.lists(finals, max_size=2),
    harness=st.builds(HarnessHealth, st.dictionaries(texts, st.floats(0, 9)), st.lists(texts, max_size=2)),
    children=st.lists(st.builds(ChildProcess, texts, numbers, st.floats(0, 9), st.none() | numbers), max_size=2),
    producer_ids_below=st.none() | numbers,
    ended=st.none() | texts,
    exit_status=st.none() | numbers,
)


@given(runs)
def test_round_trip_through_json(run: RunModel) -> None:
    """Every field survives JSON, broker ids as keys included."""
    assert RunModel.from_json(json.loads(json.dumps(run.to_json(), allow_nan=False))) == run


WHOLE = json.loads(
    json.dumps(
        run_model(
            topics=[TopicSpec("t", 1, 3)],
            phases=[PhaseSpan("start", 0)],
            defects=[DefectSetting("lose-acked")],
            children=[ChildProcess("producers", 7, 1.0)],
            final=[FinalPartition("t", 0)],
        ).to_json()
    )
)


def places(value: Any, where: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every field of ``run.json``, as the keys that lead to it; what is free-form stands for itself."""
    if isinstance(value, list):
        return [place for index, item in enumerate(value) for place in places(item, (*where, index))]
    if not isinstance(value, dict) or (where and where[-1] in FREE):
        return []
    return [place for key in value for place in [(*where, key), *places(value[key], (*where, key))]]


FREE = ("experiment", "versions", "topology", "config", "event_loop_lag_s", "log_end_offsets")


def test_newer_fields_are_tolerated() -> None:
    """A file of a newer writer reads: what it has beyond is left out."""
    later = {**WHOLE, "later": {"x": 1}, "settings": {**WHOLE["settings"], "later": 1}}
    assert RunModel.from_json(later) == RunModel.from_json(WHOLE)


@pytest.mark.parametrize("place", places(WHOLE), ids=lambda place: ".".join(map(str, place)))
def test_what_is_absent_is_named_and_never_guessed(place: tuple[str | int, ...]) -> None:
    """Each field of run.json, however deep, is taken out in turn: an error names it, whatever Python's defaults."""
    whole = json.loads(json.dumps(WHOLE))
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    del inner[place[-1]]
    with pytest.raises(RunModelError, match=rf"[. ]{place[-1]} is absent"):
        RunModel.from_json(whole)


def test_no_setting_has_a_default() -> None:
    """What the verdict depends on is said by whoever starts the run, or it is not known."""
    for each in fields(RunSettings):
        assert (each.default, each.default_factory) == (MISSING, MISSING), each.name


def test_a_run_of_another_version_is_not_guessed_at() -> None:
    """Its fields meant something else."""
    with pytest.raises(RunModelError, match=r"run\.json: schema is 1, and this version reads 2"):
        RunModel.from_json({**WHOLE, "schema": 1})


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"seed": "1"}, "run.json: seed must be an integer"),
        ({"seed": True}, "run.json: seed must be an integer"),
        ({"settings": []}, "settings must be an object"),
        ({"settings": {**WHOLE["settings"], "idempotence": 1}}, "settings.idempotence must be true or false"),
        ({"settings": {**WHOLE["settings"], "readers": "native"}}, "settings.readers must be a list"),
        ({"settings": {**WHOLE["settings"], "readers": [1]}}, r"settings.readers\[0\] must be a text"),
        ({"final": [{**WHOLE["final"][0], "log_end_offsets": {"x": 1}}]}, "key 'x' is no integer"),
        ({"final": [{**WHOLE["final"][0], "high_watermark": 10**20}]}, "high_watermark: the number is beyond 64 bits"),
        ({"settings": {**WHOLE["settings"], "rate": 10**400}}, "rate: the number is beyond 64 bits"),
        ({"faults_requested": "kill-leader"}, "faults_requested must be a list"),
        ({"ended": 3}, "ended must be a text"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], where: str) -> None:
    """A field of a wrong type is an error that names it, never a guess."""
    with pytest.raises(RunModelError, match=where):
        RunModel.from_json({**WHOLE, **change})
