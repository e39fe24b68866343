"""Writes decided partition states through the fence and takes them over into the context.

Owns the order: ZooKeeper first, context after, so that what the controller believes was written. Does not own any
decision, nor what is sent afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cluster.broker.control.controller.epoch_fence import EpochFence
from cluster.broker.journal import Journal
from cluster.broker.portions import chunks
from cluster.controller.context import ControllerContext, PartitionState
from cluster.controller.partitions import Change, apply_change
from cluster.metadata.paths import partition_path, partitions_path, state_path
from cluster.metadata.store import Create, NodeExistsError, Operation, SetData
from cluster.metadata.znodes import StateNode

logger = logging.getLogger(__name__)

#: State nodes in one multi: far below ZooKeeper's limit of 1 MB for a request.
CHUNK = 250
#: Changes that are logged one by one; of more the log has the sum, and the journal each.
LOGGED_EACH = 50


class StateWriter:
    """For one controller."""

    def __init__(self, fence: EpochFence, context: ControllerContext, journal: Journal) -> None:
        self._fence = fence
        self._context = context
        self._journal = journal

    def __repr__(self) -> str:
        return f"StateWriter({self._fence!r})"

    async def write(self, changes: Sequence[Change]) -> None:
        """Write and apply ``changes``, in chunks, each all or nothing.

        Raises ControllerMovedError; BadVersionError or NodeExistsError if a node is not as the context says.
        """
        updates = [change for change in changes if not change.creates]
        for chunk in chunks(updates, CHUNK):
            await self._fence.write(*map(self._update, chunk))
            self._apply(chunk)
        created = [change for change in changes if change.creates]
        for topic in sorted({change.topic_partition.topic for change in created}):
            await self.create_if_absent(partitions_path(topic))
        for chunk in chunks(created, CHUNK):
            await self._create(chunk)
            self._apply(chunk)

    def _update(self, change: Change) -> SetData:
        required = None if change.expected_epoch is None else self._fence.required_version(change.expected_epoch)
        version = -1 if required is None else required
        return SetData(state_path(*change.topic_partition), _encode(change.state), version)

    async def write_with(self, changes: Sequence[Change], operation: Operation) -> None:
        """Write and apply at most ``CHUNK`` changes of nodes that are there, and ``operation``, all or nothing.

        Raises as ``write`` does, and NoNodeError.
        """
        await self._fence.write(operation, *map(self._update, changes))
        self._apply(changes)

    async def create_if_absent(self, path: str, data: bytes = b"") -> None:
        """One persistent node, whether or not it is there already."""
        try:
            await self._fence.write(Create(path, data))
        except NodeExistsError:
            logger.debug("%s is there already", path)

    async def _create(self, chunk: Sequence[Change]) -> None:
        operations: list[Operation] = []
        for change in chunk:
            topic_partition = change.topic_partition
            operations.append(Create(partition_path(*topic_partition)))
            operations.append(Create(state_path(*topic_partition), _encode(change.state)))
        try:
            await self._fence.write(*operations)
        except NodeExistsError:
            # A former controller made some of the parents and no more.
            for change in chunk:
                await self.create_if_absent(partition_path(*change.topic_partition))
                await self._fence.write(Create(state_path(*change.topic_partition), _encode(change.state)))

    def _apply(self, chunk: Sequence[Change]) -> None:
        level = logging.INFO if len(chunk) <= LOGGED_EACH else logging.DEBUG
        if level == logging.DEBUG:
            reasons = ", ".join(sorted({change.reason for change in chunk}))
            first, last = chunk[0].topic_partition, chunk[-1].topic_partition
            logger.info("%d partitions have changed, %s to %s (%s)", len(chunk), first, last, reasons)
        for change in chunk:
            before = self._context.partition(change.topic_partition)
            old = None if before is None else before.state
            partition_epoch = 0 if change.expected_epoch is None else change.expected_epoch + 1
            apply_change(self._context, change, partition_epoch)
            self._tell(change, old, level)

    def _tell(self, change: Change, old: PartitionState | None, level: int) -> None:
        state = change.state
        logger.log(
            level,
            "%s: leader %s -> %d, isr %s -> %s, leader epoch %d (%s)",
            change.topic_partition,
            "none" if old is None else old.leader,
            state.leader,
            [] if old is None else list(old.isr),
            list(state.isr),
            state.leader_epoch,
            change.reason,
        )
        self._journal(
            "partition-changed",
            {
                "topic": change.topic_partition.topic,
                "partition": change.topic_partition.partition,
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "isr": list(state.isr),
                "reason": change.reason,
            },
        )


def _encode(state: PartitionState) -> bytes:
    return StateNode(state.leader, state.leader_epoch, state.isr, state.controller_epoch, state.recovering).encode()
