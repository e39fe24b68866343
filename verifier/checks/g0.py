"""G0: transactions wrote over each other in a cycle, against the order in which they were made.

Definition. A cycle of transactions in which each one wrote, in some partition, the value right before a value of the
next one. Only transactions that must have happened count, and only their values: they are committed, or their outcome
is unknown and a reader of committed records received a part. At least one transaction of the cycle began after the next
one had been committed. (Adya's G0, "write cycle".) The shortest such cycle of each component is shown. Legal: any cycle
of transactions that were open at the same time, since Kafka does not isolate writes, and their records mix freely.

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
    """One anomaly per component, in the partition of its cycle's first edge; ``offset`` is that of the later value."""
    edges = write_edges(evidence)
    backwards = [edge for edge in edges if edge.is_backwards]
    for cycle in cycles(len(evidence.transactions), edges, backwards):
        first = cycle.edges[0]
        yield Anomalous(NAME, None, *first.place, first.offset, of_cycle(evidence, cycle))
