"""Which partition a record goes to: by its key, else where it fills batches best.

Owns the choice (Kafka's BuiltInPartitioner and its load table, KIP-480 and KIP-794; docs/reference/kafka.md "Producer
client"). Does not own queues, metadata, nor which brokers take nothing (partitioner.availability.timeout.ms): that is
told. Not thread-safe: the accumulator's lock is held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from cluster.client.producer.murmur2 import murmur2
from cluster.seams.randomness import Random

#: Keys up to this size are remembered with their hash: a tenth of a megabyte in all, at most.
_REMEMBERED_KEY_BYTES = 32
_remembered_murmur2 = lru_cache(maxsize=1024)(murmur2)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition of every record with this key, among all partitions, those without a leader too."""
    value = _remembered_murmur2(key) if len(key) <= _REMEMBERED_KEY_BYTES else murmur2(key)
    return (value & 0x7FFFFFFF) % partition_count


class BuiltInPartitioner:
    """The partition of one topic's records without keys.

    It is kept (``partition``) until ``sticky_bytes``, which is batch.size, went to it, and is then drawn again: evenly
    among the partitions that have a leader, or, with ``update_load``, more often where fewer batches wait.
    ``partition`` is -1 as long as no partition is known.
    """

    __slots__ = ("_available", "_cumulative", "_loaded", "_produced_bytes", "_random", "partition", "partition_count",
                 "sticky_bytes")  # fmt: skip

    def __init__(self, sticky_bytes: int, random: Random) -> None:
        self.sticky_bytes = max(1, sticky_bytes)
        self.partition = -1
        self.partition_count = 0
        self._random = random
        self._produced_bytes = 0
        self._available: Sequence[int] = ()
        # The running sums of the weights of the partitions in _loaded; empty without adaptive choice.
        self._loaded: Sequence[int] = ()
        self._cumulative: Sequence[int] = ()

    def __repr__(self) -> str:
        return f"BuiltInPartitioner(at {self.partition} of {self.partition_count}, {self._produced_bytes} bytes)"

    def set_partitions(self, available: Sequence[int], partition_count: int) -> None:
        """Of partitions 0 to ``partition_count`` - 1, those in ``available`` have a leader.

        The present partition is kept, with or without a leader, unless it does not exist anymore.
        """
        if partition_count != self.partition_count:
            self._loaded = self._cumulative = ()
        self._available = available
        self.partition_count = partition_count
        if self.partition < 0 or self.partition >= partition_count:
            self._switch()

    def appended(self, size_bytes: int, may_switch: bool) -> None:
        """A record went to ``partition``, which made its batch larger by ``size_bytes``.

        ``may_switch`` says that no batch of the partition is left half full: else it is kept until twice the bytes.
        """
        produced_bytes = self._produced_bytes = self._produced_bytes + size_bytes
        if produced_bytes >= self.sticky_bytes and (may_switch or produced_bytes >= 2 * self.sticky_bytes):
            self._switch()

    def update_load(self, queue_sizes: Mapping[int, int] | None) -> None:
        """Draw by how many batches wait, by partition with a leader whose broker is available.

        None if that is not known of all partitions, or not wanted: then all are drawn evenly, and so they are if none
        is left, if all have the same load and none is missing, and if there is one alone.
        """
        self._loaded = self._cumulative = ()
        if not queue_sizes or self.partition_count < 2:
            return
        sizes = tuple(queue_sizes.values())
        largest = max(sizes)
        if len(sizes) == self.partition_count and min(sizes) == largest:
            return
        self._loaded = tuple(queue_sizes)
        self._cumulative = tuple(accumulate(largest + 1 - size for size in sizes))

    def _switch(self) -> None:
        self._produced_bytes = 0
        if not self.partition_count:
            self.partition = -1
            return
        drawn = self._random.getrandbits(31)
        if self._cumulative:
            self.partition = self._loaded[bisect_right(self._cumulative, drawn % self._cumulative[-1])]
        elif self._available:
            self.partition = self._available[drawn % len(self._available)]
        else:
            self.partition = drawn % self.partition_count
