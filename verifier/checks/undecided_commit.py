"""undecided-commit: a client was told of a commit, and no coordinator decided it, or not for all of it.

Definition. A producer's transactions of which something was acknowledged, and of which its client was told that they
are committed, are matched with the decisions to commit that ``__transaction_state`` has for its id, both in order; so
are those of unknown outcome of which a COMMIT ends something. A decision fits if it names all partitions in which
something of the transaction was acknowledged, and if the markers that end it there may be its own, laid beside the
decisions as for ``marker-audit`` in whatever way contradicts nothing. What is left over without a decision, though its
client was told, was committed by no one, or without one of its partitions: its records there become part of the
producer's next transaction, or stay open. Legal: decisions of which no client was told; a commit whose outcome is
unknown; a transaction in which nothing was acknowledged, of which no coordinator need know. Not judged for a producer
of whose id something may be missing in the topic. Also judged under ``unclean.leader.election.enable``, which does not
hold for the coordinators' topic, but by the names of the partitions alone.

    p7: begin 3, t-0:5 and t-1:4 ok, commit 3 ok, begin 4, t-1:6 ok        x: p7 PrepareCommit [t-0]; p7 Ongoing [t-1]
"""

# From the rows of histories, the coordinators' records and the markers, in this process. Pure.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from verifier.segments.markers import COMMIT
from verifier.transactions.client_rows import COMMITTED, ClientEvidence, ClientTransaction
from verifier.transactions.model import Anomalous, TransactionEvidence
from verifier.transactions.own_decisions import without_decision

NAME = "undecided-commit"


def undecided_commit(seen: ClientEvidence, evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per commit without a decision, where its transaction wrote first."""
    by_producer: dict[int, list[ClientTransaction]] = defaultdict(list)
    for transaction in seen.transactions:
        if transaction.producer_id >= 0 and any(sent.first_offset >= 0 for sent in transaction.sent):
            by_producer[transaction.producer_id].append(transaction)
    for producer_id, transactions in sorted(by_producer.items()):
        if not evidence.state.knows_all_of(producer_id):
            continue
        decisions = evidence.state.by_producer.get(producer_id, ())
        detail = {
            "producer_id": producer_id,
            "told": sum(each.outcome == COMMITTED for each in transactions),
            "decided": sum(each.kind == COMMIT for each in decisions),
        }
        for lacking in without_decision(transactions, evidence, producer_id):
            place, offset = min((each.place, each.first_offset) for each in lacking.sent if each.first_offset >= 0)
            named = detail | {"process": lacking.process, "number": lacking.number}
            yield Anomalous(NAME, None, *place, offset, named)
