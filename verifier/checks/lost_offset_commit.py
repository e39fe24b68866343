"""lost-offset-commit: an offset that a group committed is not in the log of its coordinator.

Definition. The most advanced replica of ``__consumer_offsets`` shows what each group has committed: the last record of
its key, by log offset. Records in a transaction count if it was committed. ``missing``: an offset was certainly
committed, and no record has it, although the log is whole. ``regressed``: the last record has an offset below every one
that can be the last according to the histories, and none of these is missing. Not judged if an election may truncate
acknowledged records, if the group's offset was removed, or if no record is about the group and a partition of the topic
is missing or not whole. ``missing`` is not judged if the log was compacted or damaged. Legal: any of the offsets if
their commits overlap in time; an offset whose commit has an unknown outcome, unless a later generation has committed.

    orders: offset-commit 80 ok, offset-commit 120 ok       __consumer_offsets: orders t-0 80
"""

# From the rows of histories and the bytes of a replica, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from verifier.groups.model import GroupEvidence, GroupPartition, OffsetCommit, StoredCommits, not_fenced
from verifier.transactions.model import Anomalous

NAME = "lost-offset-commit"
MISSING, REGRESSED = "missing", "regressed"


def lost_offset_commit(evidence: GroupEvidence) -> Iterator[Anomalous]:
    """One anomaly per offset; ``offset`` is the missing one, or the last one in the log."""
    for (group, place), partition in evidence.partitions.items():
        stored = partition.stored
        if stored is None or not partition.certain:
            continue
        missing = [*_missing(partition, stored)]
        for commit in missing:
            yield Anomalous(NAME, MISSING, *place, commit.offset, _detail(group, commit))
        if not missing and (regressed := _regressed(partition, stored)) is not None:
            offset, commit = regressed
            yield Anomalous(NAME, REGRESSED, *place, offset, _detail(group, commit))


def _detail(group: str, commit: OffsetCommit) -> dict[str, Any]:
    return {"group": group, "committed": commit.offset, "committed_by": commit.process}


def _missing(partition: GroupPartition, stored: StoredCommits) -> Iterator[OffsetCommit]:
    """For each certainly committed offset that no record has: its first commit."""
    if not stored.is_whole:
        return
    seen = set(stored.offsets)
    for commit in sorted(partition.certain, key=lambda commit: commit.end_ns):
        if commit.offset not in seen:
            seen.add(commit.offset)
            yield commit


def _regressed(partition: GroupPartition, stored: StoredCommits) -> tuple[int, OffsetCommit] | None:
    """The highest offset that may be the log's last, and the lowest commit that may be the last one, if it is above.

    None if there is no regression.
    """
    # a commit that had ended before this time is overwritten
    overwritten_ns = max(commit.begin_ns for commit in partition.certain)
    commits = not_fenced(partition.commits, partition.certain)
    may_be_last = [commit for commit in commits if commit.end_ns >= overwritten_ns]
    lowest = min(may_be_last, key=lambda commit: commit.offset)
    highest = max(stored.lasts, default=lowest.offset)
    return (highest, lowest) if highest < lowest.offset else None
