"""Whether ``run.json`` says the same twice: what the verdict depends on, and what it was made from. Pure.

The settings decide what is permitted. One that contradicts the options and configurations of the very same run was
changed afterwards, and then nobody knows what was permitted: nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from verifier.doubts import ALL, Doubt
from verifier.evidence.run_model import RunModel

#: Settings that are a key of a configuration as resolved: the configuration and the key.
_RESOLVED: Mapping[str, tuple[str, str]] = {
    "acks": ("producer", "acks"),
    "idempotence": ("producer", "enable.idempotence"),
    "max_in_flight": ("producer", "max.in.flight.requests.per.connection"),
    "retries": ("producer", "retries"),
    "delivery_timeout_ms": ("producer", "delivery.timeout.ms"),
    "isolation_level": ("consumer", "isolation.level"),
    "min_insync_replicas": ("topic", "min.insync.replicas"),
    "unclean_leader_election": ("topic", "unclean.leader.election.enable"),
    "flush_messages": ("topic", "flush.messages"),
    "flush_ms": ("topic", "flush.ms"),
    "retention_ms": ("topic", "retention.ms"),
    "retention_bytes": ("topic", "retention.bytes"),
    "cleanup_policy": ("topic", "cleanup.policy"),
    "message_timestamp_type": ("topic", "message.timestamp.type"),
    "unknown_producer": ("broker", "gapless.unknown.producer"),
    "replica_lag_time_max_ms": ("broker", "replica.lag.time.max.ms"),
    "session_timeout_ms": ("broker", "zookeeper.session.timeout.ms"),
    "producer_id_expiration_ms": ("broker", "producer.id.expiration.ms"),
}


def doubts(run: RunModel) -> Iterator[Doubt]:
    """Where the settings and the experiment disagree. What the experiment does not tell is compared with nothing."""
    asked, resolved = _part(run.experiment, "asked"), _part(run.experiment, "resolved")
    for each in fields(run.settings):
        value = getattr(run.settings, each.name)
        for said in _said(each.name, asked, resolved):
            if _plain(said) != _plain(value):
                reason = f"run.json judges by {each.name} {_told(value)}, and the run was made with {_told(said)}"
                yield Doubt(reason, ALL)


def _said(name: str, asked: Mapping[str, Any], resolved: Mapping[str, Any]) -> Iterator[Any]:
    """Every value of a setting that the experiment tells; an option that was not given is None, and tells nothing."""
    if name in _RESOLVED:
        section, key = _RESOLVED[name]
        value = _part(resolved, section).get(key)
        if value is not None:
            yield "all" if name == "acks" and str(value) == "-1" else value
        return
    for part in (asked, resolved):
        if part.get(name) is not None and name != "rate":  # some workloads have a rate of their own words
            yield part[name]


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _plain(value: Any) -> Any:
    """As JSON has it; acks may be a number or a word."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _told(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)
