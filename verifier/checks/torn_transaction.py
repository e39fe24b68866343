"""torn-transaction: a transaction is committed in one partition, and aborted or missing in another.

Definition. The markers of each partition are matched with the decisions as for ``marker-audit``. An anomaly is a
transaction that ends with a COMMIT in at least one of its partitions, and in another one with an ABORT, or without any
marker although the coordinator completed it. So a reader of committed records receives one part of the transaction
without the other. It is reported for the partition in which it is not committed. Legal: everything that is legal for
``marker-audit``; a transaction that is committed in no partition is not torn.

    x: PrepareCommit [t-0, t-1], CompleteCommit        t-0: [p7 e0] COMMIT p7 e0        t-1: [p7 e0] ABORT p7 e0
"""

# From the same evidence as marker-audit, in this process. Pure.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from verifier.files.transactions import Ended
from verifier.segments.markers import COMMIT, KIND_NAMES
from verifier.transactions.decisions import Decision
from verifier.transactions.model import Anomalous, TransactionEvidence, of_decision
from verifier.transactions.state_records import TopicPartition

NAME = "torn-transaction"


def torn_transaction(evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per transaction and partition in which it is not committed."""
    outcomes: dict[Decision, list[tuple[TopicPartition, Ended | None]]] = defaultdict(list)
    for (place, _), alignment in evidence.alignments.items():
        for decision, marker in alignment.outcomes:
            outcomes[decision].append((place, marker))
    for decision, told in outcomes.items():
        committed = sorted(place for place, marker in told if marker is not None and marker.kind == COMMIT)
        for place, marker in told if committed else ():
            if decision.is_complete if marker is None else marker.kind != COMMIT:
                topic, partition = committed[0]
                detail = of_decision(decision) | {
                    "outcome": None if marker is None else KIND_NAMES[marker.kind],
                    "committed_in": f"{topic}-{partition}",
                }
                offset = _open_since(evidence, place, decision) if marker is None else marker.marker_offset
                yield Anomalous(NAME, None, *place, offset, detail)


def _open_since(evidence: TransactionEvidence, place: TopicPartition, decision: Decision) -> int | None:
    """The first offset of the producer's open transaction in this partition; None if it has none."""
    begun = evidence.logs[place].open.get(decision.producer_id)
    return None if begun is None else begun.first_offset
