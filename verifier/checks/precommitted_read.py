"""precommitted-read: a reader of committed records received a record before its transaction's commit was requested.

Definition. A session that reads only committed records (it has an ``isolation`` row, or belongs to a member of a group)
received a value in a poll that had ended before the client first requested the commit of the value's transaction. Both
times are from the monotonic clock of one machine. So the reader saw an open transaction, and went beyond the last
stable offset.
Values of transactions that are certainly not committed are ``G1a``. Legal: a value that is delivered after the commit
was requested, even if the client has no answer yet.

    producer-1: begin 3, send s1/4 at t-0:17, commit 3 from 8.2 s on        readers-native: poll t-0:17 until 8.1 s
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.client_rows import ABORTED, ClientEvidence
from verifier.transactions.model import Anomalous

NAME = "precommitted-read"


def precommitted_read(evidence: ClientEvidence) -> Iterator[Anomalous]:
    """One anomaly per poll row and transaction; ``offset`` is that of its first value."""
    for polled in evidence.polled:
        for first, last, writer in evidence.writers(polled):
            transaction = evidence.transactions[writer]
            if transaction.outcome != ABORTED and 0 <= polled.complete_ns < transaction.asked_ns:
                detail = {
                    "reader": polled.process,
                    "stream": polled.stream,
                    "first_sequence": first,
                    "last_sequence": last,
                    "process": transaction.process,
                    "number": transaction.number,
                    "read_ns": polled.complete_ns,
                    "asked_ns": transaction.asked_ns,
                }
                yield Anomalous(NAME, None, *polled.place, polled.offset_of(first), detail)
