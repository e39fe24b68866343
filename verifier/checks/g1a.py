"""G1a: a reader of committed records received a record of a transaction that was aborted.

Definition. A session that reads only committed records (it has an ``isolation`` row, or belongs to a member of a group)
received a value that was sent in a transaction which is certainly not committed: it was aborted, or its commit was
certainly refused, and no attempt to commit it has an unknown outcome. (Adya's G1a, "aborted read"; Kafka:
``isolation.level=read_committed``, KIP-98.)
Legal: values of a transaction whose commit has an unknown outcome, or that has no end because its process was killed;
any value in a session that reads everything.

    producer-1: begin 3, send s1/4 at t-0:17, abort 3        readers-native (read_committed): poll t-0:17 = s1/4
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.client_rows import ABORTED, ClientEvidence
from verifier.transactions.model import Anomalous

NAME = "G1a"


def aborted_read(evidence: ClientEvidence) -> Iterator[Anomalous]:
    """One anomaly per poll row and transaction; ``offset`` is that of the first aborted value."""
    for polled in evidence.polled:
        for first, last, writer in evidence.writers(polled):
            transaction = evidence.transactions[writer]
            if transaction.outcome == ABORTED:
                detail = {
                    "reader": polled.process,
                    "stream": polled.stream,
                    "first_sequence": first,
                    "last_sequence": last,
                    "process": transaction.process,
                    "number": transaction.number,
                }
                yield Anomalous(NAME, None, *polled.place, polled.offset_of(first), detail)
