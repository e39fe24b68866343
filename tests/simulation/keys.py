"""Keys: what the records of one writer are besides their values.

Owns which seeds have keys, and tombstones: those whose topics are compacted. A few keys for all writers of a partition,
so that most records are superseded, by their own writer or by another.
"""

from __future__ import annotations

import asyncio

from cluster.protocol.records import NewRecord
from cluster.seams.randomness import derive
from tests.simulation.client import TIMESTAMP
from tests.simulation.ledger import TOMBSTONE
from tests.simulation.topology import Topology

KEYS = (2, 8, 40)
#: The share of the records that are tombstones, where there are keys.
TOMBSTONES = 0.15


class Keys:
    """``name`` tells the generators of several writers apart."""

    def __init__(self, topology: Topology, *name: object) -> None:
        self._random = derive(topology.seed, "keys", *name)
        self._count = derive(topology.seed, "keys").choice(KEYS) if topology.is_compacted else 0

    def record(self, value: bytes) -> NewRecord:
        """The record with this value, or the tombstone that is known by it, as of now."""
        timestamp = TIMESTAMP + int(asyncio.get_running_loop().time() * 1000)
        if not self._count:
            return NewRecord(timestamp, None, value)
        key = b"k%d" % self._random.randrange(self._count)
        if self._random.random() < TOMBSTONES:
            return NewRecord(timestamp, key, None, [(TOMBSTONE, value)])
        return NewRecord(timestamp, key, value)
