"""The verifier's settings of a default run, and an empty ``run.json``, for tests that make one by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.experiment.verdict import settings_of
from verifier.evidence.declared import DeclaredEvidence
from verifier.evidence.run_model import HarnessHealth, RunModel, RunSettings

DEFAULT = settings_of(resolve(Asked(seed=1))[0])


def settings(**changes: Any) -> RunSettings:
    """Those of ``gapless run`` without options, with ``changes``."""
    return replace(DEFAULT, **changes)


def run_model(**changes: Any) -> RunModel:
    """A run that has just begun: nothing has happened in it, and all of ``run.json`` is there."""
    begun: dict[str, Any] = {
        "name": "run",
        "seed": 1,
        "run_id": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "started_ns": 0,
        "settings": DEFAULT,
        "experiment": {},
        "versions": {},
        "repro": "gapless run --seed 1",
        "faults_requested": [],
        "defects": [],
        "topology": {},
        "topics": [],
        "evidence": DeclaredEvidence.nothing(),
        "final_topic_ids": {},
        "phases": [],
        "children": [],
        "harness": HarnessHealth(),
        "final": [],
        "interrupted": False,
        "problems": [],
        "producer_ids_below": None,
    }
    return RunModel(**{**begun, **changes})
