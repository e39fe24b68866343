"""A partition's log for models of the consumer: batches with gaps, transactions, a beginning that moves."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random

from crc32c import crc32c

from cluster.protocol.batch import CRC_AT, CRC_FROM, HEADER_BYTES, parse_header
from cluster.protocol.compression import compress
from cluster.protocol.records import NewRecord, build_batch, pack_record, seal_batch

PRODUCERS = (7, 8)


@dataclass
class Stored:
    """One batch. ``offsets`` are those of its records, which a program may see if ``outcome`` allows it."""

    base: int
    end: int
    data: bytes
    offsets: list[int]
    producer_id: int = -1
    is_control: bool = False
    #: None: no transaction; else "open", "committed" or "aborted".
    outcome: str | None = None


@dataclass
class ModelLog:
    """``end`` is the high watermark as well: what is replicated is another model's matter. Values tell the ``life``:
    how often the topic was created.
    """

    life: int = 1
    start: int = 0
    end: int = 0
    epoch: int = 0
    batches: list[Stored] = field(default_factory=list)

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return min((batch.base for batch in self.batches if batch.outcome == "open"), default=self.end)

    def append(self, random: Random) -> None:
        """A batch of any codec; some records may have been compacted away, even all; it may be of a transaction."""
        size = random.randint(1, 4)
        kept = [delta for delta in range(size) if random.random() < 0.85]
        producer_id = random.choice((-1, -1, *PRODUCERS))
        data = with_gaps(
            self.life,
            self.end,
            kept,
            size,
            codec=random.randint(0, 4),
            leader_epoch=self.epoch,
            producer_id=producer_id,
            transactional=producer_id >= 0,
        )
        offsets = [self.end + delta for delta in kept]
        outcome = "open" if producer_id >= 0 else None
        self.batches.append(Stored(self.end, self.end + size, data, offsets, producer_id, outcome=outcome))
        self.end += size

    def finish(self, producer_id: int, outcome: str) -> None:
        """End a producer's transaction, if one is open, with a marker."""
        mine = [batch for batch in self.batches if batch.producer_id == producer_id and batch.outcome == "open"]
        if not mine:
            return
        for batch in mine:
            batch.outcome = outcome
        marker = NewRecord(0, struct.pack(">hh", 0, int(outcome == "committed")), struct.pack(">hi", 0, 3))
        data = build_batch(
            [marker],
            base_offset=self.end,
            leader_epoch=self.epoch,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        self.batches.append(Stored(self.end, self.end + 1, data, [], producer_id, True))
        self.end += 1

    def visible(self, *, committed: bool) -> list[int]:
        """The offsets that a program sees in the end."""
        hidden = ("open", "aborted") if committed else ()
        return [offset for batch in self.batches if batch.outcome not in hidden for offset in batch.offsets]

    def read(self, offset: int, limit_bytes: int, *, committed: bool) -> tuple[bytes, list[tuple[int, int]]]:
        """Batches from the one that holds ``offset``, cut off at the limit but for the first; aborted transactions."""
        bound = self.stable if committed else self.end
        chosen = [batch for batch in self.batches if offset < batch.end and batch.base < bound]
        data = b"".join(batch.data for batch in chosen)
        if not chosen:
            return b"", []
        return data[: max(limit_bytes, len(chosen[0].data))], self._aborted(offset, bound)

    def _aborted(self, offset: int, bound: int) -> list[tuple[int, int]]:
        """(producer, first offset) of aborted transactions whose marker is not before ``offset``."""
        found: list[tuple[int, int]] = []
        first: dict[int, int] = {}
        for batch in self.batches:
            if batch.is_control:
                began = first.pop(batch.producer_id, None)
                if began is not None and batch.base >= offset and began < bound:
                    found.append((batch.producer_id, began))
            elif batch.outcome == "aborted":
                first.setdefault(batch.producer_id, batch.base)
        return found


def with_gaps(
    life: int,
    base: int,
    kept: list[int],
    size: int,
    *,
    codec: int,
    leader_epoch: int,
    producer_id: int,
    transactional: bool,
) -> bytes:
    """A batch of ``size`` offsets of which only these deltas are left, as compaction leaves it."""
    payload = b"".join(
        pack_record(NewRecord(base + delta, None, b"%d.%d" % (life, base + delta)), delta, base) for delta in kept
    )
    batch = bytearray(
        seal_batch(
            compress(codec, payload) if kept else b"",
            attributes=(codec if kept else 0) | (0x10 if transactional else 0),
            record_count=len(kept),
            base_timestamp=base,
            max_timestamp=base + size,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            base_offset=base,
            leader_epoch=leader_epoch,
        )
    )
    struct.pack_into(">i", batch, 23, size - 1)
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))
    assert parse_header(batch).next_offset == base + size and len(batch) >= HEADER_BYTES
    return bytes(batch)
