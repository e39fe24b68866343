"""The coordinators' topics by name, and what ``run.json`` says about them. Pure; reads no log and judges nothing.

Brokers make these topics, so the run's own topic settings say nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from verifier.evidence.run_model import RunModel

STATE_TOPIC = "__transaction_state"
OFFSETS_TOPIC = "__consumer_offsets"
_PARTITIONS = {
    STATE_TOPIC: "transaction.state.log.num.partitions",
    OFFSETS_TOPIC: "offsets.topic.num.partitions",
}


def may_lose_offsets(run: RunModel) -> bool:
    """Whether an election may cut off what was written to ``__consumer_offsets``: it may if the brokers' own default
    allows it, whatever the run's topic has. ``__transaction_state`` is always made without such elections.
    """
    return broker_settings(run).get("unclean.leader.election.enable") is not False


def configured_partitions(run: RunModel, topic: str) -> int | None:
    """How many partitions the brokers give to a coordinators' topic; None if ``run.json`` does not say it."""
    count = broker_settings(run).get(_PARTITIONS[topic])
    return count if isinstance(count, int) else None


def broker_settings(run: RunModel) -> Mapping[str, object]:
    """The configuration of the run's brokers, as far as ``run.json`` has it."""
    resolved = run.experiment.get("resolved")
    broker = resolved.get("broker") if isinstance(resolved, dict) else None
    return broker if isinstance(broker, dict) else {}
