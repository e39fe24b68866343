"""G1c: transactions read from each other in a cycle.

Definition. A cycle of transactions in which each one took as its input (``offsets`` rows) a value that the previous one
had sent. None of them is certainly aborted. The input values are those that the transaction's process received at these
offsets, in a session that reads only committed records. (Adya's G1c, "circular information flow".) A committed value
exists before it is read, so no order of the transactions explains this. The shortest cycle of each component is shown.
Legal: a transaction that reads values of earlier transactions of its own process; chains of any length.

    transaction 1: reads t-1:0 of 2, sends t-0:0        transaction 2: reads t-0:0 of 1, sends t-1:0
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.client_rows import ClientEvidence
from verifier.transactions.cycles import cycles, of_cycle, read_edges
from verifier.transactions.model import Anomalous

NAME = "G1c"


def circular_reads(evidence: ClientEvidence) -> Iterator[Anomalous]:
    """One anomaly per component, in the partition of its cycle's first edge; ``offset`` is that of the value read."""
    for cycle in cycles(len(evidence.transactions), read_edges(evidence)):
        first = cycle.edges[0]
        yield Anomalous(NAME, None, *first.place, first.offset, of_cycle(evidence, cycle))
