"""G0: transactions wrote over each other in a cycle, against the order in which they were made.

Definition. Committed transactions (or ones of unknown outcome of which a committed reader was handed anything), of
which each wrote, in some partition, the value right before one of the next, among the values of these transactions, and
the last one right before the first; and at least one of them began after the one whose value it precedes had been
committed. (Adya's G0, "write cycle".) The shortest such cycle of each component is shown. Legal: any cycle of
transactions that were open at the same time, since Kafka isolates no writes: their records mix freely.

    t-0: transaction 1, transaction 2        t-1: transaction 2, transaction 1        2 began after 1 was committed
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.client_rows import ClientEvidence
from verifier.transactions.cycles import cycles, of_cycle, write_edges
from verifier.transactions.model import Anomalous

NAME = "G0"


def write_cycle(evidence: ClientEvidence) -> Iterator[Anomalous]:
    """One anomaly per component, where its first edge is; ``offset`` is what was written there."""
    edges = write_edges(evidence)
    backwards = [edge for edge in edges if edge.is_backwards]
    for cycle in cycles(len(evidence.transactions), edges, backwards):
        first = cycle.edges[0]
        yield Anomalous(NAME, None, *first.place, first.offset, of_cycle(evidence, cycle))
