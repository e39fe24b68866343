"""What golden scenarios are played without: one rule each, taken from the frozen rules or patched away for a test.

Owns the wrong logic of the transcripts; the removals that the seeds are run without too are in ``removals.py``. A patch
is for what the rules do not bundle: (owner, name, what stands there instead).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from cluster.broker.rules import Rules
from cluster.controller.alter_partition import check_proposal
from cluster.controller.election import Election, elect_offline
from cluster.isr import IsrProposal
from cluster.log.producers import ProducerStates
from cluster.log.roll import roll_reason
from cluster.log.segment import Segment
from cluster.log.sequence import ACCEPTED, ProducerEntry, SequenceVerdict
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode
from cluster.replication.isr import InSyncReplicas
from cluster.replication.leader import LeaderState


def as_they_are(rules: Rules) -> Rules:
    """Nothing of the rules is taken away: something is patched away instead."""
    return rules


# Replication


def join_at_the_watermark(rules: Rules) -> Rules:
    """KAFKA-7128: the start of the leader's epoch does not count."""
    return replace(rules, may_join=lambda end_offset, high_watermark, _epoch_start: end_offset >= high_watermark)


def answer_every_bump(rules: Rules) -> Rules:
    """D4: a write is confirmed in the leader epoch of its append alone."""

    def acknowledge(leader: LeaderState | None, append_epoch: int, required_offset: int) -> ErrorCode | None:
        if leader is not None and leader.leader_epoch != append_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return rules.acknowledgement(leader, append_epoch, required_offset)

    return replace(rules, acknowledgement=acknowledge)


def confirm_by_offset_alone(rules: Rules) -> Rules:
    """Redpanda issue 3003: a write is confirmed when something is committed where it was put, whoever put it there."""

    def acknowledge(leader: LeaderState | None, _append_epoch: int, required_offset: int) -> ErrorCode | None:
        return None if leader is None or leader.high_watermark < required_offset else ErrorCode.NONE

    return replace(rules, acknowledgement=acknowledge)


def one_is_enough(rules: Rules) -> Rules:
    """KAFKA-1555: a leader that knows nothing of ``min.insync.replicas``."""
    return replace(rules, lead=lambda **facts: rules.lead(**{**facts, "min_insync_replicas": 1}))


_advance = LeaderState.advance


def advance_alone(leader: LeaderState, log_end_offset: int, now_ms: int) -> bool:
    """KAFKA-15583: the high watermark moves however few are in sync."""
    wanted, leader.min_insync_replicas = leader.min_insync_replicas, 1
    try:
        return _advance(leader, log_end_offset, now_ms)
    finally:
        leader.min_insync_replicas = wanted


_propose = InSyncReplicas._propose


def take_what_is_proposed(isr: InSyncReplicas, members: frozenset[int], broker_epochs: dict) -> IsrProposal | None:
    """KIP-497: the leader counts with a smaller ISR before the controller has agreed."""
    proposal = _propose(isr, members, broker_epochs)
    if proposal is not None:
        isr.committed = isr.maximal = members
    return proposal


def begin_alone(_leader: LeaderState, log_start_offset: int) -> int:
    """A leader answers DeleteRecords by its own log start."""
    return log_start_offset


# The controller


def forget_broker_epochs(rules: Rules) -> Rules:
    """KIP-903: the controller does not ask in which of its lives a replica was seen."""

    def check(context, broker_id: int, topic_id: UUID, number: int, proposal: IsrProposal):
        forgetful = replace(proposal, isr=tuple((member, -1) for member in proposal.members))
        return check_proposal(context, broker_id, topic_id, number, forgetful)

    return replace(rules, control=replace(rules.control, check_proposal=check))


def forget_partition_epochs(rules: Rules) -> Rules:
    """KIP-497: the controller does not ask which ISR a proposal was to change."""

    def check(context, broker_id: int, topic_id: UUID, number: int, proposal: IsrProposal):
        state = context.topic_by_id(topic_id).partitions[number].state
        forgetful = replace(proposal, partition_epoch=state.partition_epoch)
        return check_proposal(context, broker_id, topic_id, number, forgetful)

    return replace(rules, control=replace(rules.control, check_proposal=check))


def elect_anybody(rules: Rules) -> Rules:
    """KAFKA-1555: a replica that is not in sync leads if no other is there, as if all had asked for that."""

    def elect(
        replicas: Sequence[int], isr: Collection[int], live: Collection[int], *, unclean: bool
    ) -> Election | None:
        return elect_offline(replicas, isr, live, unclean=True)

    return replace(rules, control=replace(rules.control, elect_offline=elect))


def prefer_whoever_is_alive(replicas: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Election | None:
    """The preferred replica leads again as soon as it is back."""
    return Election(replicas[0], (*isr, replicas[0])) if replicas[0] in live else None


def hand_over_to_anybody(
    replicas: Sequence[int], _isr: Sequence[int], live: Collection[int], shutting_down: Collection[int]
) -> Election | None:
    """A leader that leaves is followed by whoever stays."""
    for replica in replicas:
        if replica in live and replica not in shutting_down:
            return Election(replica, (replica,))
    return None


# The log


_locate = Segment.locate


def locate_without_a_hole(segment: Segment, offset: int) -> int | None:
    """D6: a segment that ends above an offset has a batch that reaches it."""
    if segment._recent_floor <= offset < segment.next_offset:
        return segment._recent_positions[bisect_left(segment._recent_last, offset)]
    return _locate(segment, offset)


def never_roll_what_is_empty(segment, *arguments) -> str | None:
    """D5: an empty segment takes any batch."""
    return None if segment.size_bytes == 0 else roll_reason(segment, *arguments)


_drop_marks_above = ProducerStates.drop_marks_above


def keep_marks_of_the_expired(states: ProducerStates, offset: int) -> None:
    """D7: a cut that takes nothing from a known producer leaves what was noted above it."""
    if states.holds_above(offset):
        _drop_marks_above(states, offset)


# Producers


def obey_former_epochs(rules: Rules) -> Rules:
    """A producer that was succeeded by another of its id goes on writing."""

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        if entry is not None and header.producer_epoch < entry.producer_epoch:
            return ACCEPTED
        return rules.check_sequence(entry, header, log_start_offset, unknown)

    return replace(rules, check_sequence=check)


def remember_one_batch(rules: Rules) -> Rules:
    """Only the newest batch of a producer is known again (Redpanda issue 3077), as Kafka's snapshots hold it."""

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        if entry is not None:
            entry = entry._replace(batches=entry.batches[-1:], complete=False)
        return rules.check_sequence(entry, header, log_start_offset, unknown)

    return replace(rules, check_sequence=check)


def take_gaps(rules: Rules) -> Rules:
    """What a producer sent before need not be there."""

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        verdict = rules.check_sequence(entry, header, log_start_offset, unknown)
        return ACCEPTED if verdict.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER else verdict

    return replace(rules, check_sequence=check)
