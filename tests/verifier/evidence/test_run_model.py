"""run.json: what was written is read, strangers are tolerated, wrong types are named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    settings=st.builds(RunSettings, acks=texts, idempotence=st.booleans(), rate=st.floats(0, 1e6)),
    topics=st.lists(st.builds(TopicSpec, texts, numbers, numbers, texts, st.dictionaries(texts, texts)), max_size=2),
    phases=st.lists(st.builds(PhaseSpan, texts, numbers, st.none() | numbers), max_size=2),
    defects=st.lists(st.builds(DefectSetting, texts, st.floats(0, 1)), max_size=2),
    faults_requested=st.lists(texts, max_size=2),
    final=st.lists(finals, max_size=2),
    harness=st.builds(HarnessHealth, st.dictionaries(texts, st.floats(0, 9)), st.lists(texts, max_size=2)),
    children=st.lists(st.builds(ChildProcess, texts, numbers, st.floats(0, 9), st.none() | numbers), max_size=2),
    arguments=st.dictionaries(texts, st.none() | numbers | texts, max_size=2),
    ended=st.none() | texts,
    exit_status=st.none() | numbers,
)


@given(runs)
def test_round_trip_through_json(run: RunModel) -> None:
    """Every field survives JSON, broker ids as keys included."""
    assert RunModel.from_json(json.loads(json.dumps(run.to_json(), allow_nan=False))) == run


def test_newer_fields_are_tolerated_and_defaults_filled() -> None:
    """A file of another version reads as long as what has no default is there."""
    run = RunModel.from_json(
        {"name": "n", "seed": 1, "run_id": 2, "started": "s", "later": {"x": 1}, "settings": {"rate": 5, "later": 1}}
    )
    assert run.settings == RunSettings(rate=5.0)
    assert run.final == [] and run.exit_status is None


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"seed": "1"}, "RunModel.seed: expected int"),
        ({"seed": True}, "RunModel.seed: expected int"),
        ({"settings": []}, "RunModel.settings: expected dict"),
        ({"settings": {"idempotence": 1}}, "RunModel.settings.idempotence: expected bool"),
        ({"final": [{"topic": "t"}]}, r"RunModel.final\[0\].partition is absent"),
        ({"final": [{"topic": "t", "partition": 0, "log_end_offsets": {"x": 1}}]}, "key 'x' is no integer"),
        ({"faults_requested": "kill-leader"}, "RunModel.faults_requested: expected list"),
        ({"ended": 3}, "RunModel.ended: expected str"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], where: str) -> None:
    """A field of a wrong type is an error that names it, never a guess."""
    with pytest.raises(RunModelError, match=where):
        RunModel.from_json({"name": "n", "seed": 1, "run_id": 2, "started": "s", **change})
