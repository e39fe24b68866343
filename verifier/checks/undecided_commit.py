"""undecided-commit: a client was told of a commit, and no coordinator decided it, or not for all of it.

Definition. For each producer id, the transactions that a client was told are committed, and that have acknowledged
records, are matched with the decisions to commit in ``__transaction_state``, both in order. Transactions of unknown
outcome are matched too if a COMMIT marker ends some of their records. A decision fits if it names all partitions with
acknowledged records of the transaction, and if the markers that end these records may belong to it, by any match as for
``marker-audit`` that has no contradiction. If a transaction has no decision although its client was told of the commit,
no coordinator committed it, or none committed it in all of its partitions: its records there become part of the
producer's next transaction, or stay open. Legal: decisions that no client was told about; a commit whose outcome is
unknown; a transaction without acknowledged records, which no coordinator needs to know. Not judged for a producer whose
records may be missing in the topic. Under ``unclean.leader.election.enable``, which does not apply to the coordinators'
topic, only the partitions' names are compared.

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
    """One anomaly per commit without a decision, at its transaction's first acknowledged record."""
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
