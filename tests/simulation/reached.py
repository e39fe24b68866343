"""Reached: what simulations can reach, by the names under which they count it.

Owns the catalogue. A name that is counted and does not stand here is an error of the gate (``test_corpus``): what is
not known to be reachable is missed by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster.protocol.errors import ErrorCode
from cluster.seams.disk_fault import CALLS
from tests.simulation.nemesis.catalogue import MOVES

ERRORS = tuple(code.name for code in ErrorCode)
#: Of transactions, as their programs know them.
OUTCOMES = ("aborted", "committed", "in doubt")
REQUESTS = (
    "AlterPartitionReassignmentsRequest",
    "CreatePartitionsRequest",
    "CreateTopicsRequest",
    "DeleteTopicsRequest",
    "ElectLeadersRequest",
    "IncrementalAlterConfigsRequest",
)

#: How a name begins -> how it may go on.
FAMILIES: dict[str, tuple[str, ...]] = {
    "ISR of ": ("0", "1", "2", "3", "4"),
    "asked ": tuple(f"{request} {error}" for request in REQUESTS for error in ERRORS),
    "change of a partition: ": (
        "alter partition",
        "bounced unseen",
        "controlled shutdown of a follower",
        "controlled shutdown of the leader",
        "leader offline",
        "new partition",
        "no live replica in the ISR",
        "preferred replica",
        "reassignment",
        "reassignment completed",
        "reassignment resumed",
        "replica offline",
        "unclean election",
        "unclean election on request",
    ),
    "commit ": ("CommitFailed", "RebalanceInProgress", "RetriableCommitFailed", "stored"),
    "consumer was told ": (
        "CorruptRecord",
        "LogTruncated",
        "NoOffsetForPartition",
        "OffsetOutOfRange",
        "PartitionError",
        "TopicRecreated",
    ),
    "copies ": OUTCOMES,
    "copies failed ": ERRORS,
    "copies to be aborted ": ERRORS,
    "disk error at ": CALLS,
    "duplicate ": ("after failover", "below the window", "from the cache"),
    "election: ": ("clean", "unclean"),
    "log start moved": (" in the end", *(f": {error}" for error in ERRORS)),
    "log start moved by: ": ("asked for", "size", "time", "log-start", "the leader's log begins later"),
    "nemesis ": (*MOVES, "first-of-two", "second-of-two"),
    "partition with ": tuple(f"{n} epochs written in" for n in ("0", "1", "2", "3", "4", "5 or more")),
    "producer failed ": ERRORS,
    "producer retried ": ERRORS,
    "refused ": ERRORS,
    "transaction ": OUTCOMES,
    "transaction failed ": ERRORS,
    "transaction to be aborted ": ERRORS,
    "truncation: ": (
        "diverging epoch",
        "leader begins later",
        "leader begins within a batch",
        "leader ends before",
        "no epochs",
    ),
    "truncation ": tuple(
        f"{where} its start, {size} records"
        for where in ("above", "below")
        for size in ("0", "1", "2 to 9", "10 or more")
    ),
    "zombie ": ("was in time", *ERRORS),
}
SINGLE = (
    "acknowledged",
    "add-partition",
    "broker ended by its disk",
    "controller failover",
    "copier crashed",
    "copier was slow",
    "isr expand",
    "isr shrink",
    "leader election",
    "member crashed",
    "member fenced",
    "member lost its partitions",
    "partition cut by an unclean election",
    "partition without a leader",
    "producer began again",
    "producer had no room",
    "producer reset",
    "producer stood still",
    "reader found its position deleted",
    "rebalance of a member",
    "record after the end of its transaction",
    "record compacted away",
    "records consumed",
    "records consumed by a group",
    "segment compacted",
    "session expired",
    "transactional producer crashed",
    "truncated record",
    "unsynced tail lost",
)

REACHABLE = frozenset((*SINGLE, *(begin + end for begin, ends in FAMILIES.items() for end in ends)))


def unknown(names: Iterable[str]) -> list[str]:
    """Those that nothing is known of."""
    return sorted(set(names) - REACHABLE)
