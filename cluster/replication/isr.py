"""The in-sync replicas as their leader sees them: the committed set and at most one change in flight.

Owns the life of a change (proposed, answered by the controller, committed or taken back; KIP-497,
docs/reference/kafka.md "ISR changes"). Does not own who deserves to be in the set: that is
``cluster.replication.leader``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrAnswer, IsrProposal
from cluster.protocol.errors import ErrorCode


class IsrOutcome(Enum):
    """What an answer did to the pending change."""

    COMMITTED = "committed"
    REVERTED = "reverted"
    #: Keep the change pending and ask again.
    RETRY = "retry"
    #: Keep the change pending: the controller knows better, so a newer LeaderAndIsr should be on its way, which settles
    #: it. Ask again if none comes: a deposed controller that has not learned of it yet answers the same, from a state
    #: that is over, and nothing follows.
    WAIT = "wait"
    #: The answer is for a state that is no longer ours.
    STALE = "stale"


_REVERTING = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
_WAITING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class InSyncReplicas:
    """The committed ISR of one partition in one leader epoch, and the change that is in flight.

    ``maximal`` is the set that the high watermark must respect: while a change is in flight the controller may or
    may not have made it, so a replica being added counts already and one being removed counts still.
    """

    __slots__ = ("committed", "leader_epoch", "maximal", "partition_epoch", "pending")

    def __init__(self, isr: Iterable[int], leader_epoch: int, partition_epoch: int) -> None:
        self.committed = frozenset(isr)
        self.maximal = self.committed
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.pending: IsrProposal | None = None

    def __repr__(self) -> str:
        change = f" -> {list(self.pending.members)}" if self.pending else ""
        return f"<InSyncReplicas {sorted(self.committed)}{change} epoch {self.leader_epoch}.{self.partition_epoch}>"

    def propose_adding(self, replica_id: int, broker_epochs: Mapping[int, int]) -> IsrProposal | None:
        """The change that adds a replica, now in flight; None if one is in flight already or it is a member."""
        return self._propose(self.committed | {replica_id}, broker_epochs)

    def propose_removing(self, replica_ids: Iterable[int], broker_epochs: Mapping[int, int]) -> IsrProposal | None:
        """The change that removes replicas, now in flight; None if one is in flight or none of them is a member."""
        return self._propose(self.committed.difference(replica_ids), broker_epochs)

    def _propose(self, members: frozenset[int], broker_epochs: Mapping[int, int]) -> IsrProposal | None:
        if self.pending is not None or members == self.committed:
            return None
        isr = tuple((member, broker_epochs.get(member, UNKNOWN_BROKER_EPOCH)) for member in sorted(members))
        self.pending = IsrProposal(self.leader_epoch, self.partition_epoch, isr)
        self.maximal = self.committed | members
        return self.pending

    def answered(self, proposal: IsrProposal, answer: IsrAnswer) -> IsrOutcome:
        """Settle the change in flight by the controller's answer to ``proposal``."""
        if self.pending is not proposal:
            return IsrOutcome.STALE
        if answer.error_code is ErrorCode.NONE:
            if answer.leader_epoch != self.leader_epoch or answer.partition_epoch < self.partition_epoch:
                return IsrOutcome.STALE
            self._commit(answer.isr, answer.partition_epoch)
            return IsrOutcome.COMMITTED
        if answer.error_code in _REVERTING:
            self._commit(self.committed, self.partition_epoch)
            return IsrOutcome.REVERTED
        return IsrOutcome.WAIT if answer.error_code in _WAITING else IsrOutcome.RETRY

    def told(self, isr: Iterable[int], partition_epoch: int) -> bool:
        """Take over what the controller says in the same leader epoch. False if it is not newer than what we have."""
        if partition_epoch <= self.partition_epoch:
            return False
        self._commit(isr, partition_epoch)
        return True

    def _commit(self, isr: Iterable[int], partition_epoch: int) -> None:
        self.committed = frozenset(isr)
        self.maximal = self.committed
        self.partition_epoch = partition_epoch
        self.pending = None
