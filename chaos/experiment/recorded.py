"""Reads the options of a run back from its ``run.json``.

Does not own what is written there (``chaos.experiment.experiment``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.command_line import FIELDS
from chaos.experiment.errors import ExperimentError
from chaos.experiment.experiment import Experiment
from chaos.experiment.forms import ScheduleFile
from chaos.schedules.model import Injection, Schedule

#: The profile that swarms extend.
DRAWN_OVER = "chaos"
#: The most settings with a changed value that a line names.
MOST_NAMED = 3


def recorded(experiment: Mapping[str, Any]) -> Asked:
    """The options of a run, from the ``experiment`` of its ``run.json``, with the settings that a swarm drew.

    Raises ExperimentError if another version wrote it.
    """
    asked = as_asked(experiment)
    try:
        return _by_name(asked, experiment)
    except (KeyError, TypeError) as error:
        raise ExperimentError(f"what the run was asked cannot be read: {error!r}") from error


def as_asked(experiment: Mapping[str, object]) -> Asked:
    """The options of a run exactly as given. Raises ExperimentError if another version wrote them."""
    asked = experiment.get("asked")
    if not isinstance(asked, Mapping):
        raise ExperimentError("run.json does not say what the run was asked")
    if unknown := [name for name in asked if name not in FIELDS]:
        raise ExperimentError(f"this version does not know {unknown[0]!r}, which the run was asked; use the one it had")
    if absent := [name for name, each in FIELDS.items() if name not in asked and each.default is MISSING]:
        raise ExperimentError(f"run.json does not say which {absent[0]} the run was asked")
    try:
        return Asked(**{name: as_value(name, value) for name, value in asked.items()})
    except (KeyError, TypeError) as error:
        raise ExperimentError(f"what the run was asked cannot be read: {error!r}") from error


def _by_name(asked: Asked, experiment: Mapping[str, Any]) -> Asked:
    """Replace a swarm by the settings that it drew, because with fewer faults it might draw others."""
    drawn = experiment["resolved"].get("drawn")
    if drawn is None:
        return asked
    producers = dict(drawn["producers"])
    return replace(
        asked,
        # older versions recorded a swarm as the profile
        profile=DRAWN_OVER,
        swarm=None,
        acks=producers.pop("acks", asked.acks),
        producer_config=(*asked.producer_config, *(f"{key}={value}" for key, value in producers.items())),
        topic_config=(*asked.topic_config, *(f"{key}={value}" for key, value in drawn["topic"].items())),
    )


def as_value(name: str, value: Any) -> Any:
    """The value of a field of ``Asked`` from its JSON in ``run.json``. Raises KeyError or TypeError."""
    if name == "schedule" and value is not None:
        injections = tuple(Injection(**each) for each in value["injections"])
        return ScheduleFile(Path(value["path"]), Schedule(value["seed"], injections))
    return tuple(value) if isinstance(value, list) else value


def differences(before: Mapping[str, Any], now: Experiment) -> list[str]:
    """A line about settings to which the same options resolve differently now: other defaults, or a changed file."""
    was, is_now = (dict(_flat(each, "")) for each in (before.get("resolved"), _as_read(now.to_json()["resolved"])))
    # these differ anyway: a given schedule replaces the kinds of faults, and explicit settings replace drawn ones
    others = [
        key
        for key in {**was, **is_now}
        if key.partition(".")[0] not in ("faults", "drawn") and was.get(key) != is_now.get(key)
    ]
    if not others:
        return []
    named = ", ".join(f"{key} was {was.get(key)!r} and is {is_now.get(key)!r}" for key in others[:MOST_NAMED])
    more = f", and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return [f"the same options come to something else now: {named}{more}"]


def _as_read(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _flat(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(each, f"{key}.{name}" if key else str(name))
    else:
        yield key, value
