"""hanging-transaction: a transaction is open at the end of a log, and nothing will end it.

Definition. The log of a partition (the one of its most advanced replica) has a transaction without a marker. Either
``__transaction_state`` has no record of its producer, or says that the producer has no transaction in this partition.
Or the transaction is still undecided, or decided but not complete, 15 s after its timeout had passed and the last fault
was healed, while the brokers were still running. (A coordinator looks for such transactions every 10 s.) Readers of
committed records receive nothing after such a transaction: the last stable offset stays where it began. Legal: a
transaction for which this time has not passed. Logs and producers that ``marker-audit`` does not judge are not judged
here either.

    t-0: ... 7:[p7 e0 transactional] ... end        __transaction_state: x: p7 e0 CompleteAbort
"""

# From the same evidence as marker-audit, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.coordinators.topics import STATE_TOPIC
from verifier.files.transactions import Opened
from verifier.transactions.model import Anomalous, TransactionEvidence
from verifier.transactions.state_records import ONGOING, PREPARE_ABORT, PREPARE_COMMIT, STATE_NAMES, TopicPartition

NAME = "hanging-transaction"

#: The time in ms in which a coordinator must end a transaction after its timeout: it looks for them every 10 s, aborts
#: them, and writes their markers.
BOUND_MS = 15_000

_OPEN_STATES = (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)


def hanging_transaction(evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per transaction and partition; ``offset`` is its first offset there."""
    for place, log in sorted(evidence.logs.items()):
        for begun in log.open.values() if log.is_whole and evidence.keeps_markers(place) else ():
            why = _why_it_hangs(evidence, place, begun)
            if why is not None:
                detail = {"broker": log.broker, **begun._asdict(), "why": why}
                yield Anomalous(NAME, None, *place, begun.first_offset, detail)


def _why_it_hangs(evidence: TransactionEvidence, place: TopicPartition, begun: Opened) -> str | None:
    """Why no one will end a transaction, or why it should have ended by now; None if it may still be ended."""
    if not evidence.state.knows_all_of(begun.producer_id):
        return None
    known = evidence.state.latest.get(begun.producer_id)
    if known is None:
        return f"{STATE_TOPIC} has nothing of its producer"
    state = STATE_NAMES[known.state]
    if known.state not in _OPEN_STATES or place not in known.topic_partitions:
        return f"{STATE_TOPIC} says {state}, and no transaction of this partition"
    if evidence.working is None:
        return None
    due_ms = max(known.started_ms + known.timeout_ms, evidence.working.healed_ms) + BOUND_MS
    if evidence.working.stopped_ms <= due_ms:
        return None
    return f"{STATE_TOPIC} still says {state}, {evidence.working.stopped_ms - known.started_ms} ms after it began"
