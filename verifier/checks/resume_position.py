"""resume-position: a member that was assigned a partition skipped records beyond its group's committed offset.

Definition. A member was assigned a partition and began beyond every committed offset that it may have been told
(``verifier/groups/positions.py``), and there are records between the closest of these and its first offset.
``skipped``: the group had committed an offset. ``reset``: nothing can have been committed, and the member did not begin
at the start of the log, as ``auto.offset.reset=earliest`` demands. Legal: a later offset if only control records, or
records of transactions that were not committed, are in between; the offset of any commit whose outcome is unknown or
that overlaps the assignment. A member that begins too early is a ``committed-offset-regression``.

    orders, generation 3: offset-commit 120 ok      generation 4: resume at 135      120 to 134 are skipped
"""

# From the rows of histories and the log's batches, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.groups.model import GroupEvidence
from verifier.groups.positions import BEYOND, CommittedPositions
from verifier.transactions.model import Anomalous

NAME = "resume-position"
SKIPPED, RESET = "skipped", "reset"


def resume_position(evidence: GroupEvidence) -> Iterator[Anomalous]:
    """One anomaly per resumption; ``offset`` is where the member began."""
    for (group, place), partition in evidence.partitions.items():
        if partition.log is None:
            continue
        positions = CommittedPositions(partition, partition.log)
        for resumed in partition.resumed:
            found = positions.judge(resumed)
            if found.verdict == BEYOND:
                detail = {
                    "group": group,
                    "process": resumed.process,
                    "session": resumed.session,
                    "expected": found.expected,
                    "committed_by": "" if found.commit is None else found.commit.process,
                }
                cause = RESET if found.commit is None else SKIPPED
                yield Anomalous(NAME, cause, *place, resumed.offset, detail)
