"""Evidence: what is known of one partition when it is judged.

Owns that value, which clients and observers fill in while a simulation runs. Does not own the judgment (``oracle``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.protocol.batch import iter_batches
from tests.simulation.kept import Kept
from tests.simulation.ledger import Ledger

INT64_MAX = 2**63 - 1


@dataclass
class Evidence:
    """What is known of one partition.

    ``sent`` are all values that were ever sent. ``acknowledged`` maps values to the offset that was told, -1 for none;
    ``refused`` maps values of which a client said that they certainly were not written to its error. ``streams`` are
    values in the order in which one producer sent them. ``read`` are each reader's (offset, value, leader epoch) in
    order, from the start of the log. ``logs`` are the bytes of each replica in the end, all of them committed, and
    ``starts`` where they begin. Below ``deleted`` records may have been deleted on request. ``is_remade``: the topic
    was deleted, and ``former`` are the ledgers of those of its name that were written to. ``is_compacted``: the topic
    may have been compacted, and lost tombstones too if ``tombstones_go``.
    """

    name: str
    sent: set[bytes] = field(default_factory=set)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    refused: dict[bytes, str] = field(default_factory=dict)
    streams: list[list[bytes]] = field(default_factory=list)
    read: list[list[tuple[int, bytes, int]]] = field(default_factory=list)
    logs: dict[int, bytes] = field(default_factory=dict)
    starts: Mapping[int, int] = field(default_factory=dict)
    deleted: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    former: list[Ledger] = field(default_factory=list)
    is_remade: bool = False
    is_compacted: bool = False
    tombstones_go: bool = False

    #: Ledgers to what their logs must keep.
    _kept: dict[int, Kept] = field(default_factory=dict)

    def gone_below(self, ledger: Ledger) -> int:
        """Below this offset records may be gone, by request or by retention."""
        return max(self.deleted, ledger.retained)

    def kept_of(self, ledger: Ledger) -> Kept | None:
        """What a compacted log must keep; None for one that is not compacted."""
        if self.is_compacted and id(ledger) not in self._kept:
            ends = [header.next_offset for log in self.logs.values() for _, header in iter_batches(log)]
            end = max(ends, default=0) if ledger is self.ledger else INT64_MAX
            self._kept[id(ledger)] = Kept(ledger.history(end), tombstones_go=self.tombstones_go)
        return self._kept.get(id(ledger))

    @property
    def kept(self) -> Kept | None:
        return self.kept_of(self.ledger)

    def is_superseded(self, offset: int, value: bytes) -> bool:
        """Whether that record was in a compacted log: whether it may be missing there is judged of every offset."""
        return self.kept is not None and self.kept.stood(offset, value)
