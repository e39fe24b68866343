"""zombie-write: a producer wrote to a transaction, or a marker was written, under an epoch that was already over.

Definition. In the log of a partition, as its most advanced replica has it: a transactional batch, or a marker, of a
producer id whose epoch is lower than that of a batch or marker of the same id before it. Raising an epoch fences
the producer that had it: a broker refuses what still arrives from it with INVALID_PRODUCER_EPOCH
(``ProducerAppendInfo.checkProducerEpoch``). A marker raises the epoch too: of a transaction that timed out, it carries
the next one. Legal: an epoch that rises by any amount, and any epoch of another id. Batches outside of transactions are
``producer-epoch-regression``'s.

    log: 0:[p7 e0 transactional] 1:[ABORT p7 e1] 2:[p7 e0 transactional]        epoch 0 of producer 7 was over at 1
"""

# Found in this process, where the markers are read. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.model import Anomalous, TransactionEvidence

NAME = "zombie-write"


def zombie_write(evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per batch; ``offset`` is its base offset."""
    for place, log in sorted(evidence.logs.items()):
        for each in log.late:
            yield Anomalous(NAME, None, *place, each.offset, {"broker": log.broker, **each._asdict()})
