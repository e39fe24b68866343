"""marker-audit: the markers in the logs are not those that the coordinators decided.

Definition. ``__transaction_state`` has a record for each step of a transaction. PrepareCommit or PrepareAbort is the
decision, with the partitions that it concerns, and the Complete record after it says that each of them has its marker.
In each partition, the markers of a producer are matched with its decisions there, both in order. Of all possible
matches, the one with the fewest contradictions counts. Its contradictions are anomalies: a completed decision without a
marker (cause ``missing``); a marker that belongs to no decision, or that ends records of the transaction after it
(cause ``stray``); a marker that contradicts its decision (cause ``opposite``). A COMMIT that also ends records that its
producer wrote in an earlier epoch has the cause ``former-epoch``: they belong to another transaction, which no one had
decided to commit, since raising the epoch aborts it first. A record that contradicts an earlier decision about the same
transaction has the cause ``decisions``. A marker with a lower coordinator epoch than an earlier one of the same
producer has the cause ``former-coordinator``: the later coordinator has taken over, and a broker refuses the former
one's marker with TRANSACTION_COORDINATOR_FENCED (``ProducerAppendInfo.checkCoordinatorEpoch``). So has a marker that
ends something if its coordinator epoch is lower than the leader epoch of every decision to which it may belong in a
match without contradictions, because a coordinator sends no marker before it has stored the decision.

Legal: a marker in a partition where the producer wrote nothing; a second marker of one decision that ends nothing,
since a coordinator sends a marker until it is confirmed, and the next coordinator sends it again; markers of two
producers in any order of coordinator epochs, since a broker compares only those of one producer; a decision that its
coordinator had not completed; a commit without a marker that a fence under a later epoch replaces, since its record may
not have been acknowledged in time. Three kinds of evidence are not compared with decisions: logs that do not begin at
0, have gaps, or have unreadable control batches; producers whose records in ``__transaction_state`` may be missing; and
logs under ``unclean.leader.election.enable``, because an election may truncate a marker. (For ``__consumer_offsets``,
the brokers' own default of that setting counts.)

    __transaction_state: x: PrepareCommit [t-0, t-1], CompleteCommit        t-0: ... COMMIT        t-1: ... no marker
"""

# The logs of all partitions are compared with one topic, which has few records, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.coordinators.topics import STATE_TOPIC
from verifier.files.transactions import Ended
from verifier.segments.markers import COMMIT, KIND_NAMES
from verifier.transactions.logs import LogTransactions
from verifier.transactions.model import Anomalous, TransactionEvidence, of_decision, of_marker
from verifier.transactions.state_records import TopicPartition

NAME = "marker-audit"


def marker_audit(evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per marker, missing marker or contradiction."""
    for each in evidence.state.contradictions:
        detail = each._asdict() | {"decides": KIND_NAMES[each.kind]}
        yield Anomalous(NAME, "decisions", STATE_TOPIC, each.partition, each.offset, detail)
    for (place, producer_id), alignment in evidence.alignments.items():
        for decision in alignment.missing:
            yield Anomalous(NAME, "missing", *place, None, of_decision(decision))
        for marker in alignment.strays:
            detail = {"producer_id": producer_id, **of_marker(marker)}
            yield Anomalous(NAME, "stray", *place, marker.marker_offset, detail)
        for decision, marker in alignment.opposite:
            yield Anomalous(NAME, "opposite", *place, marker.marker_offset, of_decision(decision) | of_marker(marker))
    for place, log in evidence.logs.items():
        for marker, what, epoch in _of_former_coordinators(evidence, place, log):
            detail = {"producer_id": marker.producer_id, "after": what, "after_epoch": epoch, **of_marker(marker)}
            yield Anomalous(NAME, "former-coordinator", *place, marker.marker_offset, detail)
        for marker in log.ended:
            is_judged = (place, marker.producer_id) in evidence.alignments
            if is_judged and marker.kind == COMMIT and marker.begun_epoch < marker.producer_epoch:
                detail = {"producer_id": marker.producer_id, "begun_epoch": marker.begun_epoch, **of_marker(marker)}
                yield Anomalous(NAME, "former-epoch", *place, marker.marker_offset, detail)


def _of_former_coordinators(
    evidence: TransactionEvidence, place: TopicPartition, log: LogTransactions
) -> Iterator[tuple[Ended, str, int]]:
    """Markers of former coordinators: each with what it comes after ("a marker", "the decision"), and that epoch."""
    fenced = {each.marker.marker_offset for each in log.fenced}
    for each in log.fenced:
        yield each.marker, "a marker", each.after_epoch
    for marker in log.ended:
        key = place, marker.producer_id
        numbers = evidence.readings.get(key, {}).get(marker.marker_offset)
        if numbers and marker.marker_offset not in fenced:
            least = min(evidence.beside[key][1][number].leader_epoch for number in numbers)
            if marker.coordinator_epoch < least:
                yield marker, "the decision", least
