"""Ledger: what the leaders of one partition appended, and what unclean elections cut off.

Owns the record of one incarnation of a partition (a topic that is made again begins a new one). It is written while
the simulation runs, by observers that nothing in the cluster knows of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.protocol.batch import iter_batches

#: (producer id, base sequence): a batch of an idempotent producer.
BatchId = tuple[int, int]


class Appended(NamedTuple):
    """A batch that a leader appended: where, in which epoch, how many records, where its log began then."""

    base_offset: int
    epoch: int
    count: int
    log_start: int


class Cut(NamedTuple):
    """An unclean election: what its leader held when it began to lead, base offsets to batches, is all that is left of
    the epochs before ``epoch``."""

    epoch: int
    held: Mapping[int, BatchId]


@dataclass
class Ledger:
    """``leaders`` maps a leader epoch to who appended as its leader."""

    appended: dict[BatchId, list[Appended]] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    leaders: dict[int, set[int]] = field(default_factory=dict)

    def append(self, batch: BatchId, entry: Appended) -> None:
        self.appended.setdefault(batch, []).append(entry)

    def is_cut_off(self, batch: BatchId, base_offset: int, epoch: int) -> bool:
        """Whether what an epoch had there was gone when the leader of a later unclean election began."""
        return any(epoch < cut.epoch and cut.held.get(base_offset) != batch for cut in self.cuts)

    def is_gone(self, batch: BatchId, entry: Appended, log_start: int) -> bool:
        """Whether one appended batch was deleted whole, or cut off."""
        return entry.base_offset + entry.count <= log_start or self.is_cut_off(batch, entry.base_offset, entry.epoch)


def held(log: bytes) -> dict[int, BatchId]:
    """The batches of a log by their base offsets."""
    return {header.base_offset: (header.producer_id, header.base_sequence) for _, header in iter_batches(log)}
