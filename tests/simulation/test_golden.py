"""Golden scenarios: real bugs of replication as transcripts over the real code, and each without the rule that helps.

The files are ``golden/*.txt``; how to rewrite them stands in ``transcript.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cluster.broker.control.channels import BrokerChannel
from cluster.broker.replicas.follower_log import FollowerLog
from cluster.broker.replicas.roles import Roles
from cluster.broker.rules import Rules
from cluster.controller.alter_partition import IsrProposal, check_proposal
from cluster.log import opening
from cluster.protocol.errors import ErrorCode
from cluster.replication.leader import LeaderState
from tests.simulation.removals import acknowledge_early, cut_to_the_watermark, keep_the_log_start, keep_the_tail
from tests.simulation.transcript import GOLDEN, Transcript, commands_of, play

NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))


def join_at_the_watermark(rules: Rules) -> Rules:
    """KAFKA-7128: the start of the leader's epoch does not count."""
    return replace(rules, may_join=lambda end_offset, high_watermark, _epoch_start: end_offset >= high_watermark)


def forget_broker_epochs(rules: Rules) -> Rules:
    """KIP-903: the controller does not ask in which of its lives a replica was seen."""

    def check(context, broker_id: int, proposal: IsrProposal):
        return check_proposal(context, broker_id, replace(proposal, isr=tuple((m, -1) for m in proposal.members)))

    return replace(rules, control=replace(rules.control, check_proposal=check))


def answer_every_bump(rules: Rules) -> Rules:
    """A write is confirmed in the leader epoch of its append alone."""

    def acknowledge(leader: LeaderState | None, append_epoch: int, required_offset: int) -> ErrorCode | None:
        if leader is not None and leader.leader_epoch != append_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return rules.acknowledgement(leader, append_epoch, required_offset)

    return replace(rules, acknowledgement=acknowledge)


def refuses(value: str) -> Callable[[Transcript], None]:
    """It is in the log of the one that leads, and its producer was told that it is not."""

    def check(transcript: Transcript) -> None:
        assert value in transcript.values(transcript.leader("t"))
        assert value not in transcript.acknowledged

    return check


def loses(*values: str) -> Callable[[Transcript], None]:
    """These values, all of them acknowledged, are not in the log of the one that leads in the end."""

    def check(transcript: Transcript) -> None:
        assert transcript.lost() == list(values)

    return check


def differ(one: list[str], other: list[str]) -> Callable[[Transcript], None]:
    """Brokers 1 and 2 live, have nothing more to copy, and hold different records at the same offsets."""

    def check(transcript: Transcript) -> None:
        assert set(transcript.processes) >= {1, 2}
        assert (transcript.values(1), transcript.values(2)) == (one, other)

    return check


def has_no_leader(transcript: Transcript) -> None:
    """Brokers 2 and 3 live and are well, and neither leads."""
    assert set(transcript.processes) >= {2, 3}
    assert transcript.leader("t") == -1


def as_they_are(rules: Rules) -> Rules:
    """Nothing of the rules is taken away: see ``PATCHED``."""
    return rules


#: scenario -> what is patched away beside the rule: its owner and its name
PATCHED: dict[str, list[tuple[object, str]]] = {
    "a-disk-that-fails-while-a-role-is-taken": [(Roles, "_failed"), (BrokerChannel, "_note_partition_errors")],
    "a-leader-that-ends-below-our-start": [(FollowerLog, "_lacks_what_is_below")],
    "an-empty-follower-of-another-history": [(opening, "_load_epochs"), (FollowerLog, "_lacks_what_is_below")],
}

#: scenario -> the rule that is taken away, and what is then seen in the end
WITHOUT = {
    "kip-101-cut-to-the-watermark": (cut_to_the_watermark, loses("m2")),
    "kip-101-divergence": (keep_the_tail, differ(["m1", "m2"], ["m1", "m3"])),
    "kip-279-three-elections": (keep_the_tail, differ(["a0", "c1", "c2", "c3"], ["a0", "b1", "b2", "c3"])),
    "kafka-7128-joining-at-the-watermark": (join_at_the_watermark, loses("m2")),
    "kip-903-a-former-life": (forget_broker_epochs, loses("m1", "m2")),
    "a-leader-that-ends-below-our-start": (keep_the_log_start, loses("a3", "b0", "b1", "b2")),
    "a-disk-that-fails-while-a-role-is-taken": (as_they_are, has_no_leader),
    "an-empty-follower-of-another-history": (as_they_are, loses("a0", "a1", "b0", "b1")),
    "an-epoch-bump-during-a-write": (answer_every_bump, refuses("m2")),
    "split-brain": (acknowledge_early, loses("stray")),
}

#: Scenarios in which what was acknowledged is lost with the disk, or by an unclean election, whatever the rules.
LOSING = (
    *("kip-101-divergence", "kip-279-three-elections"),
    *("a-leader-that-ends-below-our-start", "an-empty-follower-of-another-history"),
)


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    """The states after each command are those that were written down."""
    text = (GOLDEN / f"{name}.txt").read_text()
    assert play(text)[0] == text


@pytest.mark.parametrize("name", NAMES)
def test_without_its_rule_the_anomaly_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each scenario goes wrong in its own way if the rule that protects from it is removed."""
    for owner, attribute in PATCHED.get(name, []):
        monkeypatch.setattr(owner, attribute, lambda *_arguments: None)
    removal, anomaly = WITHOUT[name]
    _, transcript = play((GOLDEN / f"{name}.txt").read_text(), removal(Rules()))
    anomaly(transcript)


@pytest.mark.parametrize("name", NAMES)
def test_with_its_rule_nothing_is_lost(name: str) -> None:
    """What was acknowledged is in the leader's log, or nobody leads: the anomalies above are not the scenario's own."""
    _, transcript = play((GOLDEN / f"{name}.txt").read_text())
    if transcript.leader("t") > 0 and name not in LOSING:
        assert transcript.lost() == []
    live = [broker_id for broker_id in transcript.replicas if broker_id in transcript.processes]
    if transcript.leader("t") > 0:
        assert len({tuple(transcript.values(broker_id)) for broker_id in live}) == 1


def test_a_block_has_one_command() -> None:
    """A script that says more than one thing at once is refused, not half done."""
    with pytest.raises(AssertionError, match="one command a block"):
        commands_of("kill 1\nkill 2\n")
