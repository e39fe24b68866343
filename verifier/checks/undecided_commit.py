"""undecided-commit: clients were told of more commits than the coordinators decided.

Definition. The commits that succeeded for one producer id, by the histories, of transactions in which something was
acknowledged, are more than the decisions to commit in the records of ``__transaction_state``. So a coordinator said
that a transaction is committed, and none had decided it: its records become part of the producer's next transaction, or
stay open. Legal: fewer; a commit whose outcome is unknown; a transaction in which nothing was acknowledged, of which no
coordinator need know. Not judged for a producer of whose id something may be missing in the topic. Also judged under
``unclean.leader.election.enable``, which does not hold for the coordinators' topic.

    producer-1 (p7): commit 3 ok, commit 4 ok        __transaction_state: x: p7 e0 PrepareCommit, p7 e0 CompleteCommit
"""

# From the rows of histories and the coordinators' records, in this process. Pure.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from verifier.segments.markers import COMMIT
from verifier.transactions.client_rows import COMMITTED, ClientEvidence, ClientTransaction
from verifier.transactions.model import Anomalous, TransactionEvidence

NAME = "undecided-commit"


def undecided_commit(seen: ClientEvidence, evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per commit that is too many, where the producer's last transactions wrote."""
    told: dict[int, list[ClientTransaction]] = defaultdict(list)
    for transaction in seen.transactions:
        is_stored = any(sent.first_offset >= 0 for sent in transaction.sent)
        if transaction.outcome == COMMITTED and transaction.producer_id >= 0 and is_stored:
            told[transaction.producer_id].append(transaction)
    for producer_id, committed in sorted(told.items()):
        decided = sum(each.kind == COMMIT for each in evidence.state.by_producer.get(producer_id, ()))
        if len(committed) <= decided or not evidence.state.knows_all_of(producer_id):
            continue
        last = sorted(committed, key=lambda each: each.ended_ns)[decided - len(committed) :]
        detail = {"producer_id": producer_id, "told": len(committed), "decided": decided}
        for transaction in last:
            sent = min(each for each in transaction.sent if each.first_offset >= 0)
            yield Anomalous(NAME, None, *sent.place, sent.first_offset, {**detail, "process": transaction.process})
