"""ConsumerAssignment: the partitions that are read, where each one is, and the records that wait to be taken.

Owns positions, pauses, buffered blocks and the errors that wait to be raised, each in its turn. Does not own whom to
ask, nor what an answer means (``fetching``). Pure.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from uuid import UUID

from cluster.client.cluster_view import ClusterView
from cluster.client.consumer.block import FetchedBlock
from cluster.client.consumer.results import ConsumerError, ConsumerRecord, CorruptRecord
from cluster.topic_partition import TopicPartition


class AssignedPartition:
    """One partition. ``position`` is the offset of the next record, None as long as it is not known.

    ``offset_epoch`` is the leader epoch of the record before it, -1 if not known. ``block`` are records that wait,
    ``error`` one that waits to be raised: while there is either, nothing is fetched. ``moves`` counts how often it was
    placed elsewhere. Offsets that the broker told last are -1 if it has not. ``failed_at`` is the leader and its epoch
    that the pause until ``retry_ms`` is for. ``topic_id`` is that of the topic which the position is in, if it is
    known; ``doubted_in`` is the view of the cluster in which that topic turned out not to hold the position.
    """

    __slots__ = (
        "block",
        "doubted_in",
        "error",
        "failed_at",
        "failures",
        "high_watermark",
        "is_paused",
        "key",
        "last_stable_offset",
        "log_start_offset",
        "moves",
        "offset_epoch",
        "position",
        "retry_ms",
        "topic_id",
    )

    def __init__(self, key: TopicPartition) -> None:
        self.key = key
        self.position: int | None = None
        self.offset_epoch = -1
        self.moves = 0
        self.is_paused = False
        self.block: FetchedBlock | None = None
        self.error: ConsumerError | None = None
        self.failures = 0
        self.retry_ms = 0
        self.failed_at: tuple[int, int] | None = None
        self.topic_id: UUID | None = None
        self.doubted_in: ClusterView | None = None
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1

    def __repr__(self) -> str:
        paused = ", paused" if self.is_paused else ""
        return f"AssignedPartition({self.key[0]}-{self.key[1]} at {self.position}{paused}, {self.error or self.block})"

    @property
    def is_idle(self) -> bool:
        """Whether its records are wanted and none are there."""
        return self.position is not None and not self.is_paused and self.block is None and self.error is None


class ConsumerAssignment:
    """NOT thread-safe."""

    def __init__(self) -> None:
        self._partitions: OrderedDict[TopicPartition, AssignedPartition] = OrderedDict()
        # Partitions with a block or an error, in the order in which these came.
        self._waiting: deque[AssignedPartition] = deque()
        #: Anyone who gives what was taken to the program says so here: an assignment alone, which nothing can divide.
        self.is_handed_over = True
        # Of those that ``take`` has moved since ``settle``, where they were.
        self._moved: dict[AssignedPartition, tuple[int | None, int]] = {}

    def __repr__(self) -> str:
        return f"ConsumerAssignment({list(self._partitions.values())!r})"

    def __iter__(self) -> Iterator[AssignedPartition]:
        """Partitions in the order in which to ask for them: those that brought records last come last."""
        return iter(self._partitions.values())

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._partitions

    @property
    def assigned(self) -> list[TopicPartition]:
        return list(self._partitions)

    def get(self, key: TopicPartition) -> AssignedPartition | None:
        return self._partitions.get(key)

    def find(self, key: TopicPartition) -> AssignedPartition:
        """Raises ``ValueError`` for a partition that is not assigned."""
        found = self._partitions.get(key)
        if found is None:
            raise ValueError(f"No current assignment for partition {key[0]}-{key[1]}")
        return found

    def replace(self, keys: Iterable[TopicPartition]) -> None:
        """Read exactly these. Those that were read already continue where they are; new ones have no position."""
        self.settle()
        wanted = dict.fromkeys(keys)
        waiting = deque(each for each in self._waiting if each.key in wanted)
        partitions = OrderedDict((key, self._partitions.get(key) or AssignedPartition(key)) for key in wanted)
        # One step, which an exception (Ctrl-C) cannot divide.
        self._partitions, self._waiting = partitions, waiting

    def place(
        self, partition: AssignedPartition, position: int | None, offset_epoch: int = -1, topic_id: UUID | None = None
    ) -> None:
        """Go elsewhere: what was fetched, or went wrong, at the old place is forgotten."""
        self._moved.pop(partition, None)
        partition.position, partition.offset_epoch = position, offset_epoch
        partition.moves += 1
        partition.topic_id, partition.doubted_in = topic_id, None
        partition.failures = partition.retry_ms = 0
        self._drop(partition)

    def store(self, partition: AssignedPartition, block: FetchedBlock) -> None:
        """Records came for an idle partition."""
        partition.block = block
        self._waiting.append(partition)
        self._partitions.move_to_end(partition.key)

    def fail(self, partition: AssignedPartition, error: ConsumerError) -> None:
        """An error came for an idle partition; it is raised once, in its turn."""
        partition.error = error
        self._waiting.append(partition)

    def raise_error(self, partition: AssignedPartition) -> None:
        """Raise what waits to be raised, if anything does; once."""
        error = partition.error
        if error is not None:
            self._drop(partition)
            raise error

    def take(self, limit: int) -> list[ConsumerRecord]:
        """The next records, at most ``limit``, oldest arrivals first. Positions move beyond what is returned.

        Raises the error whose turn it is, if there are no records before it; ``CorruptRecord`` for a batch that cannot
        be read, whose block is abandoned. Then no position has moved beyond a record.
        """
        self.is_handed_over = False
        taken: list[ConsumerRecord] = []
        for partition in list(self._waiting):
            if partition.error is not None:
                if taken:
                    break
                self.is_handed_over = True
                self.raise_error(partition)
            if partition.is_paused:
                continue
            if not self._take_of(partition, limit, taken) or len(taken) >= limit:
                break
        if not taken:
            self.is_handed_over = True
        return taken

    def settle(self) -> None:
        """Before more is taken: what was taken last comes again if it was not handed over, for an exception (Ctrl-C)
        came between the two.
        """
        if not self.is_handed_over:
            self.forget_blocks()
            for partition, (position, offset_epoch) in list(self._moved.items()):
                self.place(partition, position, offset_epoch, partition.topic_id)
        self._moved.clear()
        self.is_handed_over = True

    def forget_blocks(self) -> None:
        """Records that wait are to be fetched again. Errors still wait."""
        for partition in self._partitions.values():
            partition.block = None
        self._waiting = deque(each for each in self._partitions.values() if each.error is not None)

    def _take_of(self, partition: AssignedPartition, limit: int, taken: list[ConsumerRecord]) -> bool:
        """Append what its block has; False if there is something wrong behind what was taken."""
        block = partition.block
        while block is not None and len(taken) < limit:
            try:
                records = block.take(limit - len(taken))
            except CorruptRecord:
                if taken:
                    return False
                self._drop(partition)
                self.is_handed_over = True
                raise
            self._moved.setdefault(partition, (partition.position, partition.offset_epoch))
            partition.position, partition.offset_epoch = block.next_offset, block.leader_epoch
            taken += records
            if not records or block.is_drained:
                self._drop(partition)
                break
        return True

    def _drop(self, partition: AssignedPartition) -> None:
        if partition.block is not None or partition.error is not None:
            partition.block = partition.error = None
            self._waiting.remove(partition)
