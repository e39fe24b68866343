"""zombie-write: a producer wrote to a transaction, or a marker was written, under an epoch that was already over.

Definition. The log of a partition (the one of its most advanced replica) has a transactional batch, or a marker, whose
producer epoch is lower than that of an earlier batch or marker of the same producer id. Raising the epoch fences the
producer with the old one: a broker refuses batches that still arrive from it with INVALID_PRODUCER_EPOCH
(``ProducerAppendInfo.checkProducerEpoch``). A marker can raise the epoch too: the marker of a transaction that timed
out has the next epoch. Legal: an epoch that rises by any amount, and any epoch of another id. Batches outside of
transactions belong to ``producer-epoch-regression``.

    log: 0:[p7 e0 transactional] 1:[ABORT p7 e1] 2:[p7 e0 transactional]        epoch 0 of producer 7 was over at 1
"""

# Found in this process, where the markers are read. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.model import Anomalous, TransactionEvidence

NAME = "zombie-write"


def zombie_write(evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per batch or marker; ``offset`` is its base offset."""
    for place, log in sorted(evidence.logs.items()):
        for each in log.late:
            yield Anomalous(NAME, None, *place, each.offset, {"broker": log.broker, **each._asdict()})
