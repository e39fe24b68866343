"""committed-offset-regression: what a group had committed went back.

Definition. If the coordinator acknowledged a commit, its offset is the group's committed offset until another commit to
the partition may have followed. Still, one of two things happened. ``resumed``: a member was assigned the partition and
began below every committed offset that it may have been told at that time (``verifier/groups/positions.py``), or below
some of these and beyond the others. ``stale-generation``: the coordinator acknowledged a lower offset of a member whose
generation had ended: the commit began after a commit of a later generation had been acknowledged. Kafka would answer
ILLEGAL_GENERATION. Legal: a lower offset that a member of the same or a later generation commits, and a member that
begins there afterwards; a lower offset that a commit with an unknown outcome may have set (it never counts as
overwritten, unless a later generation has committed); any position if the commits overlap in time.

    orders, generation 3: offset-commit 120 ok      generation 4: resume at 80
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from verifier.groups.model import GroupEvidence, GroupPartition, OffsetCommit
from verifier.groups.positions import BELOW, CommittedPositions
from verifier.transactions.model import Anomalous

NAME = "committed-offset-regression"
RESUMED, STALE = "resumed", "stale-generation"


def committed_offset_regression(evidence: GroupEvidence) -> Iterator[Anomalous]:
    """One anomaly per resumption or commit; ``offset`` is where the member began, or the offset of the commit."""
    for (group, place), partition in evidence.partitions.items():
        for offset, detail in _resumed(partition):
            yield Anomalous(NAME, RESUMED, *place, offset, {"group": group, **detail})
        for stale, newer in _stale(partition):
            detail = {
                "group": group,
                "process": stale.process,
                "generation": stale.generation,
                "committed": newer.offset,
                "committed_by": newer.process,
                "committed_generation": newer.generation,
            }
            yield Anomalous(NAME, STALE, *place, stale.offset, detail)


def _resumed(partition: GroupPartition) -> Iterator[tuple[int, dict[str, Any]]]:
    """The offset and ``detail`` of each resumption that began too low."""
    if partition.log is None:
        return
    positions = CommittedPositions(partition, partition.log)
    for resumed in partition.resumed:
        found = positions.judge(resumed)
        if found.verdict == BELOW:
            commit = found.commit
            detail = {
                "process": resumed.process,
                "session": resumed.session,
                "committed": found.expected,
                "committed_by": "" if commit is None else commit.process,
            }
            yield resumed.offset, detail


def _stale(partition: GroupPartition) -> Iterator[tuple[OffsetCommit, OffsetCommit]]:
    """Each acknowledged commit of an ended generation, with the commit of a later generation that proves its end."""
    known = [commit for commit in partition.certain if commit.generation >= 0]
    ended = sorted(known, key=lambda commit: (commit.end_ns, commit.offset))
    newest: OffsetCommit | None = None
    at = 0
    for commit in sorted(known, key=lambda commit: commit.begin_ns):
        while at < len(ended) and ended[at].end_ns < commit.begin_ns:
            if newest is None or ended[at].generation >= newest.generation:
                newest = ended[at]
            at += 1
        if newest is not None and commit.generation < newest.generation and commit.offset < newest.offset:
            yield commit, newest
