"""group-completeness: a group committed past a record that none of its members received.

Definition. The final log of a partition has a record below the highest offset that the group certainly committed, and
at or above the lowest offset at which a member began to read the partition, and no poll of any member returned it.
Control records, and records of transactions that were not committed, are delivered to no one and do not count. Not
judged if the history of a member is cut short, since records that are missing in it may have been delivered. Legal: a
record that was delivered to several members, or several times to one (a group delivers at least once; the report counts
those), and records at or above the committed offset, which the next member would receive.

    log: 0..9      group orders: polls [0..4], [7..9], offset-commit 10        5 and 6 were delivered to no one
"""

# From the rows of histories and the log's batches, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.groups.model import GroupEvidence, Spans
from verifier.transactions.model import Anomalous

NAME = "group-completeness"


def group_completeness(evidence: GroupEvidence) -> Iterator[Anomalous]:
    """One anomaly per span of consecutive offsets; ``offset`` is its first."""
    for (group, place), partition in evidence.partitions.items():
        certain = partition.certain
        if partition.log is None or not partition.is_whole or not certain or not partition.resumed:
            continue
        highest = max(certain, key=lambda commit: commit.offset)
        began = min(resumed.offset for resumed in partition.resumed)
        owed = Spans(list(partition.log.records.within(began, highest.offset)))
        for span in owed.without(Spans(partition.delivered)):
            detail = {
                "group": group,
                "last_offset": span.last,
                "committed": highest.offset,
                "committed_by": highest.process,
            }
            yield Anomalous(NAME, None, *place, span.first, detail)
