"""Checks that all records of the settings agree. A verdict depends on these settings. Pure.

Owns where each setting is recorded. The experiment is declared once (``experiment`` in ``run.json``), and ``settings``
is derived from it. The topic was created with these settings, the load processes read them from
``loadgen/settings.json``, and the histories show whether producers had ids and received offsets. If someone changes one
record so that more is excused, the others contradict it, and nothing can be judged. No file of the brokers records
their settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from verifier.closing.closing import Closing
from verifier.doubts import ALL, Doubt
from verifier.evidence.run_model import RunModel, RunSettings

SettingPlace = tuple[str, ...]

_RESOLVED, _ASKED = ("experiment", "resolved"), ("experiment", "asked")

#: Setting -> its other places in ``run.json``. It must be in the first one, and is in the others if its option was
#: given.
STANDS: Mapping[str, tuple[SettingPlace, ...]] = {
    "acks": ((*_RESOLVED, "producer", "acks"), (*_ASKED, "acks")),
    "idempotence": ((*_RESOLVED, "producer", "enable.idempotence"), (*_ASKED, "idempotence")),
    "max_in_flight": ((*_RESOLVED, "producer", "max.in.flight.requests.per.connection"),),
    "retries": ((*_RESOLVED, "producer", "retries"),),
    "client": ((*_ASKED, "client"),),
    "brokers": ((*_ASKED, "brokers"),),
    "partitions": ((*_RESOLVED, "partitions"), (*_ASKED, "partitions")),
    "replication_factor": ((*_ASKED, "replication_factor"),),
    "unclean_leader_election": ((*_RESOLVED, "topic", "unclean.leader.election.enable"),),
    "unknown_producer": ((*_RESOLVED, "broker", "gapless.unknown.producer"),),
    "replica_lag_time_max_ms": ((*_RESOLVED, "broker", "replica.lag.time.max.ms"),),
    "session_timeout_ms": ((*_RESOLVED, "broker", "zookeeper.session.timeout.ms"),),
    "producer_id_expiration_ms": ((*_RESOLVED, "broker", "producer.id.expiration.ms"),),
    "rate": ((*_RESOLVED, "workload", "rate"), (*_ASKED, "rate")),
    "users": ((*_RESOLVED, "users"), (*_ASKED, "users")),
    "load_processes": ((*_ASKED, "load_processes"),),
    "readers": ((*_ASKED, "readers"),),
    "final_readers": ((*_ASKED, "final_readers"),),
    "stalled_after_s": ((*_ASKED, "stalled_after_s"),),
    "target": ((*_ASKED, "target"),),
    "replica_dirs": ((*_ASKED, "replica_dirs"),),
}

#: Setting -> its key in ``loadgen/settings.json``, and setting -> its possible keys in ``producer_config`` there. The
#: values of the latter are text if they were given as options.
_OF_THE_LOAD = {
    "client": "client",
    "rate": "rate",
    "partitions": "partitions",
    "users": "producers",
    "load_processes": "processes",
    "readers": "readers",
    "final_readers": "final_readers",
}
_OF_PRODUCERS = {
    "acks": ("acks",),
    "idempotence": ("enable.idempotence",),
    "max_in_flight": ("max.in.flight.requests.per.connection", "max.in.flight"),
    "retries": ("retries", "message.send.max.retries"),
}

#: The keys of a topic's configuration that a verdict depends on.
_OF_TOPICS = ("cleanup.policy", "retention.ms", "retention.bytes", "unclean.leader.election.enable")

_ABSENT = object()


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """Every place that contradicts ``settings`` in ``run.json``, with both values."""
    for reason in [*_experiment(run), *_topics(run), *_load(run, closing), *_histories(run, closing)]:
        yield Doubt(reason, ALL)


def _experiment(run: RunModel) -> Iterator[str]:
    record = {"experiment": run.experiment}
    for each in fields(RunSettings):
        setting = getattr(run.settings, each.name)
        must, *may = STANDS[each.name]
        if (found := _at(record, must)) is _ABSENT:
            yield f"run.json does not say {'.'.join(must)}"
        elif not _same(each.name, setting, found):
            yield _contradiction(each.name, setting, ".".join(must), found)
        for place in may:
            if (found := _at(record, place)) not in (_ABSENT, None) and not _same(each.name, setting, found):
                yield _contradiction(each.name, setting, ".".join(place), found)
    yield from _faults(run, record)


def _faults(run: RunModel, record: Mapping[str, Any]) -> Iterator[str]:
    """A difference between ``faults_requested`` and the experiment. A kind that is not listed would not be missed."""
    asked = _at(record, (*_RESOLVED, "faults"))
    if isinstance(injections := _at(record, (*_ASKED, "schedule", "injections")), list):
        asked = [each.get("fault") for each in injections if isinstance(each, dict)]
    if not isinstance(asked, list):
        yield "run.json does not say experiment.resolved.faults"
    elif {*run.faults_requested} != {*map(str, asked)}:
        requested, wanted = (", ".join(sorted({*map(str, each)})) or "none" for each in (run.faults_requested, asked))
        yield f"run.json has faults_requested {requested}, but the experiment asked for {wanted}"


def _topics(run: RunModel) -> Iterator[str]:
    for topic in run.topics:
        for key in _OF_TOPICS:
            made, place = topic.config.get(key), (*_RESOLVED, "topic", key)
            asked = _at({"experiment": run.experiment}, place)
            if asked is not _ABSENT and made != _text(asked):
                yield f"{topic.name} was created with {key} {made!r}, and {'.'.join(place)} is {_text(asked)!r}"


def _load(run: RunModel, closing: Closing) -> Iterator[str]:
    load = closing.load
    if load is None:
        return  # ``verifier.completeness.sealed`` reports that it cannot be read
    file = "loadgen/settings.json"
    if load.get("run_id") != run.run_id:
        yield f"{file} is of the run {load.get('run_id')}, not of {run.run_id}"
    if load.get("topic") not in [topic.name for topic in run.topics]:
        yield f"{file} writes to {load.get('topic')}, which is not the topic of the run"
    for name, key in _OF_THE_LOAD.items():
        setting, found = getattr(run.settings, name), load.get(key, _ABSENT)
        if key == "rate" and load.get("outstanding"):
            found = None  # records are sent as fast as they are acknowledged, and the rate is not used
        if found is _ABSENT:
            yield f"{file} does not say {key}"
        elif not _same(name, setting, found):
            yield _contradiction(name, setting, f"{file} {key}", found)
    handed = load.get("producer_config")
    if not isinstance(handed, dict):
        yield f"{file} does not say producer_config"
        return
    for name, keys in _OF_PRODUCERS.items():
        setting = getattr(run.settings, name)
        for key in keys:
            # an absent key means the client's default; only that of acks is the same for all clients
            found = handed.get(key, "all" if key == "acks" else _text(setting))
            if not _same(name, _text(setting), found):
                yield _contradiction(name, setting, f"{file} producer_config.{key}", found)


def _histories(run: RunModel, closing: Closing) -> Iterator[str]:
    """Acknowledgements in the histories that contradict the settings."""
    settings = run.settings
    if settings.idempotence and settings.acks != "all":
        yield f"run.json has settings.acks {settings.acks!r}, and settings.idempotence True"
        return
    if not settings.idempotence and any(account.has_producer_ids for account in closing.accounts):
        yield "run.json has settings.idempotence False, and records were acknowledged to producers with ids"
    if settings.acks == "0" and any(account.has_offsets for account in closing.accounts):
        yield "run.json has settings.acks '0', and acknowledgements have offsets"


def _at(record: Mapping[str, Any], place: SettingPlace) -> Any:
    """The value at this path of keys; ``_ABSENT`` if there is none."""
    inner: Any = record
    for key in place:
        if not isinstance(inner, dict) or key not in inner:
            return _ABSENT
        inner = inner[key]
    return inner


def _same(name: str, setting: object, found: object) -> bool:
    """Whether a recorded value means the same as the setting of this name."""
    if name == "rate" and (found is None or isinstance(found, str)):
        return setting == 0.0  # no rate, or a rate that follows the acknowledgements
    if name == "acks" and str(found) == "-1":
        return setting == "all"
    # True == 1 in Python, but not in JSON
    return _plain(setting) == found and isinstance(found, bool) == isinstance(setting, bool)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _text(value: object) -> str:
    """A value in the form that it has in a Kafka configuration."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _contradiction(name: str, setting: object, place: str, found: object) -> str:
    return f"run.json has settings.{name} {_plain(setting)!r}, and {place} {found!r}"
