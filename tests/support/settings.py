"""The verifier's settings of a default run, and an empty ``run.json``, for tests that make one by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.experiment.verdict_settings import settings_of
from verifier.completeness.settings import STANDS
from verifier.evidence.declared import DeclaredEvidence
from verifier.evidence.run_model import HarnessHealth, RunModel, RunSettings

DEFAULT = settings_of(resolve(Asked(seed=1))[0])
_EXPERIMENT = json.dumps(resolve(Asked(seed=1))[0].to_json())
#: What a topic keeps: everything.
TOPIC_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


def settings(**changes: Any) -> RunSettings:
    """Those of ``gapless run`` without options, with ``changes``."""
    return replace(DEFAULT, **changes)


def experiment_of(
    settings: RunSettings, topic_config: Mapping[str, str] = TOPIC_CONFIG, faults: Sequence[str] = ()
) -> dict[str, Any]:
    """What ``run.json`` records of an experiment that comes to these settings, this topic and these faults."""
    record: dict[str, Any] = {"experiment": json.loads(_EXPERIMENT)}
    for name, (place, *_) in STANDS.items():
        inner = record
        for key in place[:-1]:
            inner = inner[key]
        value = getattr(settings, name)
        inner[place[-1]] = list(value) if isinstance(value, tuple) else value
    unclean = "unclean.leader.election.enable"  # a setting, and typed
    record["experiment"]["resolved"]["topic"] |= {key: text for key, text in topic_config.items() if key != unclean}
    record["experiment"]["resolved"]["faults"] = list(faults)
    plain: dict[str, Any] = record["experiment"]
    return plain


def topic_config_of(settings: RunSettings, given: Mapping[str, str] = TOPIC_CONFIG) -> dict[str, str]:
    """The configuration of a topic as it was created."""
    unclean = str(settings.unclean_leader_election).lower()
    return {**TOPIC_CONFIG, "unclean.leader.election.enable": unclean, **given}


def load_settings_of(settings: RunSettings, run_id: int, topic: str) -> dict[str, Any]:
    """What the load processes of such a run are handed."""
    return {
        "run_id": run_id,
        "topic": topic,
        "client": settings.client,
        "rate": settings.rate,
        "partitions": settings.partitions,
        "producers": settings.users,
        "processes": settings.load_processes,
        "readers": list(settings.readers),
        "final_readers": list(settings.final_readers),
        "producer_config": {
            "acks": settings.acks,
            "enable.idempotence": str(settings.idempotence).lower(),
            "max.in.flight.requests.per.connection": str(settings.max_in_flight),
        },
    }


def run_model(**changes: Any) -> RunModel:
    """A run that has just begun: nothing has happened in it, and all of ``run.json`` is there."""
    begun: dict[str, Any] = {
        "name": "run",
        "seed": 1,
        "run_id": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "started_ns": 0,
        "settings": DEFAULT,
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
    if "experiment" not in changes:
        faults = changes.get("faults_requested", [])
        begun["experiment"] = experiment_of(changes.get("settings", DEFAULT), faults=faults)
    return RunModel(**{**begun, **changes})
