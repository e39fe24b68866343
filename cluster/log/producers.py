"""ProducerStates: what one log knows of every producer that wrote to it (Kafka's ProducerStateManager).

Owns the map of entries, how an appended batch changes it, and how it goes back with the log. Does not own the decision
about a batch (``sequence.py``, ``transactions.py``), the bytes of a snapshot (``producer_snapshot.py``) or reading the
log.

The log is the truth: after a start or a truncation the entries are rebuilt from batch headers, because a snapshot
has only the newest batch of each producer. So that a truncation need not begin at the log's first byte, there are
marks (``producer_marks.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from cluster.log.aborted_transactions import AbortedTransaction
from cluster.log.log_ends import LogEnds
from cluster.log.producer_hosts import UNKNOWN, ProducerHosts, crowds, room_of
from cluster.log.producer_marks import ProducerMarks
from cluster.log.producer_snapshot import parse_snapshot, snapshot_bytes
from cluster.log.sequence import SEQUENCE_MASK, WINDOW, BatchMetadata, ProducerEntry
from cluster.log.transactions import OpenTransactions
from cluster.protocol.batch import TRANSACTIONAL_BIT, BatchHeader
from cluster.protocol.control_records import ControlRecordType, EndTransactionMarker

# The same as calling the classes, which costs a call more for every batch.
_new_batch: Callable[[tuple[int, ...]], BatchMetadata] = partial(tuple.__new__, BatchMetadata)
_new_entry: Callable[[tuple[Any, ...]], ProducerEntry] = partial(tuple.__new__, ProducerEntry)


class _Unchanged(NamedTuple):
    entry: ProducerEntry
    since_ms: int


class ProducerStates:
    """The entries of one log, by producer id."""

    def __init__(self) -> None:
        #: To be read, and changed by this class alone. The mapping itself may be another one later.
        self.entries: dict[int, ProducerEntry] = {}
        #: The same transactions as in the entries, by offset.
        self.transactions = OpenTransactions()
        self._marks = ProducerMarks()
        #: Each entry as the last look for idle producers found it, and since when it is so.
        self._unchanged: dict[int, _Unchanged] = {}
        self._ends = LogEnds()
        #: The offset below which no producer is left that could make room: of which hosts.
        self._no_room_below = -1
        self._no_room_of: set[Container[str] | None] = set()
        self.hosts = ProducerHosts()

    def __repr__(self) -> str:
        return f"ProducerStates({len(self.entries)} producers, {len(self._marks)} marks)"

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self.entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self.entries.get(producer_id)

    def put(self, entry: ProducerEntry) -> None:
        """Take an entry as it became by several batches at once (``replay.py``)."""
        self.entries[entry.producer_id] = entry

    def update(
        self, header: BatchHeader, base_offset: int, marker: EndTransactionMarker | None = None
    ) -> AbortedTransaction | None:
        """Note a batch that the log took at ``base_offset`` (the header's own may still be the producer's 0).

        ``marker`` is the one in a control batch. Returns the transaction that it aborts, if any. Nothing is judged: the
        log is what it is. A batch that does not continue its producer's sequence leaves a history that is not complete.
        """
        _, _, _, _, _, attributes, last_offset_delta, _, timestamp, producer_id, producer_epoch, base_sequence, _ = (
            header
        )
        if producer_id < 0:
            return None
        entry = self.entries.get(producer_id)
        if base_sequence < 0:
            return self._update_without_sequence(entry, header, base_offset, marker)
        last_sequence = (base_sequence + last_offset_delta) & SEQUENCE_MASK
        batch = _new_batch((base_sequence, last_sequence, base_offset, base_offset + last_offset_delta, timestamp))
        if entry is None:
            entry = ProducerEntry(producer_id, producer_epoch, (), True, timestamp)
        elif entry.producer_epoch != producer_epoch:
            entry = entry._replace(producer_epoch=producer_epoch, batches=(), complete=True, wrapped=False)
        _, _, batches, complete, _, wrapped, coordinator_epoch, txn_first_offset = entry
        if attributes & TRANSACTIONAL_BIT and txn_first_offset < 0:
            txn_first_offset = self.transactions.begin(producer_id, base_offset)
        before = batches[-1][1] if batches else -1
        self.entries[producer_id] = _new_entry(
            (
                producer_id,
                producer_epoch,
                (*batches[1 - WINDOW :], batch),
                complete and base_sequence == (before + 1) & SEQUENCE_MASK,
                timestamp,
                wrapped or last_sequence < before,
                coordinator_epoch,
                txn_first_offset,
            )
        )
        return None

    def _update_without_sequence(
        self, entry: ProducerEntry | None, header: BatchHeader, offset: int, marker: EndTransactionMarker | None
    ) -> AbortedTransaction | None:
        """A transaction marker or a coordinator's batch: it may begin a new epoch, in which 0 is then expected."""
        producer_id = header.producer_id
        producer_epoch = header.producer_epoch
        transactions = self.transactions
        transactions.newest_unsequenced = max(transactions.newest_unsequenced, offset)
        if entry is None:
            # The producer's own batches of this epoch may have been deleted before the marker.
            entry = ProducerEntry(producer_id, producer_epoch, (), False, header.max_timestamp)
        elif entry.producer_epoch != producer_epoch:
            entry = entry._replace(producer_epoch=producer_epoch, batches=(), complete=True, wrapped=False)
        first_offset = entry.txn_first_offset
        coordinator_epoch = entry.coordinator_epoch
        aborted = None
        if marker is not None:
            coordinator_epoch = marker.coordinator_epoch
            if first_offset >= 0:
                stable_offset = transactions.end(first_offset, offset)
                if marker.control_type is ControlRecordType.ABORT:
                    aborted = AbortedTransaction(producer_id, first_offset, offset, stable_offset)
            first_offset = -1
        elif first_offset < 0 and header.is_transactional and not header.is_control:
            first_offset = transactions.begin(producer_id, offset)
        self.entries[producer_id] = entry._replace(
            last_timestamp=header.max_timestamp, coordinator_epoch=coordinator_epoch, txn_first_offset=first_offset
        )
        return aborted

    def expire(self, wall_ms: int, monotonic_ms: int, expiration_ms: int) -> int:
        """Forget producers that are idle for ``expiration_ms``; returns how many.

        As in Kafka the newest batch's timestamp must be so old. That is the client's clock, and a client may well write
        old times: so the entry must also have been the same for that long, by our own clock, as seen by these calls.
        A producer whose transaction is open stays.
        """
        before = len(self)
        unchanged: dict[int, _Unchanged] = {}
        for entry in list(self):
            seen = self._unchanged.get(entry.producer_id)
            if seen is None or seen.entry is not entry:
                seen = _Unchanged(entry, monotonic_ms)
            is_old = wall_ms - entry.last_timestamp >= expiration_ms
            is_open = entry.txn_first_offset >= 0
            if is_old and not is_open and monotonic_ms - seen.since_ms >= expiration_ms:
                del self.entries[entry.producer_id]
            else:
                unchanged[entry.producer_id] = seen
        self._unchanged = unchanged
        self.hosts.keep(self.entries)
        return before - len(self)

    def has_room(self, most: int, end_offset: int, monotonic_ms: int, host: str = UNKNOWN) -> bool:
        """Whether one more producer may be remembered, if ``most`` may be, in a log that ends at ``end_offset``.

        Those that have written nothing for ``ROOM_MS``, by our own clock, make room, unless a transaction is open. For
        one of a crowd only those of crowds do (``producer_hosts.py``), and those of which nothing is known.
        """
        self.note_end(end_offset, monotonic_ms)
        room = room_of(host, self.hosts.counts[host], most)
        if len(self.entries) >= room:
            self.forget_idle(monotonic_ms, None if room == most else crowds(self.hosts.counts, most) | {UNKNOWN})
        return len(self.entries) < room

    def forget(self, producer_id: int) -> None:
        """Forget a producer that has no transaction open, and nothing of which a retry could be a copy."""
        del self.entries[producer_id]

    def note_end(self, end_offset: int, monotonic_ms: int) -> None:
        """The log ends there now. From this it is known later who has written nothing since."""
        self._ends.note_end(end_offset, monotonic_ms)

    def forget_idle(self, monotonic_ms: int, of_hosts: Container[str] | None = None) -> int:
        """Forget who has written nothing for ``ROOM_MS`` and has no transaction open; returns how many.

        Only producers of these hosts; None: of all. Those that wrote one batch alone go first, the others if there are
        none. Only what ``note_end`` was told counts.
        """
        idle_below = self._ends.idle_below(monotonic_ms)
        if idle_below is None:
            return 0
        if idle_below != self._no_room_below:
            self._no_room_below = idle_below
            self._no_room_of.clear()
        if of_hosts in self._no_room_of:
            return 0
        idle = [
            entry
            for key, entry in self.entries.items()
            if entry.last_offset < idle_below
            and entry.txn_first_offset < 0
            and (of_hosts is None or self.hosts.get(key) in of_hosts)
        ]
        gone = [entry.producer_id for entry in idle if len(entry.batches) <= 1]
        if not gone:
            gone = [entry.producer_id for entry in idle]
            self._no_room_of.add(of_hosts)
        for producer_id in gone:
            del self.entries[producer_id]
        if gone:
            self.hosts.keep(self.entries)
        return len(gone)

    def clear(self) -> None:
        self.entries = {}
        self.transactions = OpenTransactions()
        self._marks = ProducerMarks()
        self._ends = LogEnds()
        self.hosts = ProducerHosts()

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Take entries as they were at a clean stop, with all that was known of them."""
        self.entries = {entry.producer_id: entry for entry in entries}
        self.transactions.replace(self)
        self._marks = ProducerMarks()

    def mark(self, offset: int) -> Mapping[int, ProducerEntry]:
        """Remember the entries as they are with the log ending at ``offset``, and return them."""
        return self._marks.add(offset, self.entries, is_roll=True)

    def mark_within(self, offset: int) -> None:
        """The same between two rolls, if much has been written since the last mark."""
        if self.entries and self._marks.is_due(offset):
            self._marks.add(offset, self.entries, is_roll=False)

    def drop_marks_above(self, offset: int) -> None:
        """The log ends at ``offset`` now. A mark above it would bring back producers whose batches are in no log.

        Also where no entry rests on what was cut, because its producers have expired: Kafka's
        ``ProducerStateManager.truncateAndReload`` drops its snapshots there whatever the entries are.
        """
        self._marks.drop_above(offset)
        self._ends.cut(offset)
        self._no_room_below = -1

    def holds_above(self, offset: int) -> bool:
        """Whether any entry may rest on a batch that reaches ``offset`` or beyond, so that a truncation there matters.

        An entry without batches rests on a marker whose offset is not kept; of markers only the newest offset is.
        """
        if self.transactions.newest_unsequenced >= offset:
            return True
        return any(entry.last_offset >= offset or not entry.batches for entry in self)

    def rewind(self, offset: int) -> int | None:
        """Go back to the newest mark at or below ``offset`` and return its offset.

        None if there is no such mark: then the entries are empty. Either way the caller replays the log from there.
        """
        self.drop_marks_above(offset)
        mark = self._marks.newest
        if mark is None:
            self.entries = {}
            self.transactions = OpenTransactions()
            self.hosts = ProducerHosts()
            return None
        self.entries = dict(mark.entries)
        self.transactions.replace(self, mark.offset)
        self.hosts.keep(self.entries)
        return mark.offset

    def snapshot(self) -> bytes:
        """The entries in Kafka's snapshot format: of each producer the newest batch alone."""
        return snapshot_bytes(self)

    def load_snapshot(self, data: bytes) -> None:
        """Take the entries of a snapshot, whose history is unknown. Raises ``CheckpointError``."""
        self.entries = {entry.producer_id: entry for entry in parse_snapshot(data)}
        self.transactions.replace(self)
