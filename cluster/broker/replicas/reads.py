"""Reads: one fetch request across its partitions, and again those of them where something has changed.

Owns the size limits of a whole response (Kafka's ReplicaManager) and when what was found is enough (its DelayedFetch).
Does not own waiting (``purgatory``) or the reading of one partition (``Replica.read``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from cluster.broker.replicas.fetch_checks import FetchedBy, fetch_error
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.replica import Replica
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResult
from cluster.seams.storage import FileRange

#: Partitions of a large request that are read before another may have its turn.
PARTITIONS_A_STEP = 200


class Reads:
    """What a request has found so far: one result a partition, in the order of the request.

    ``find`` returns a replica of this broker or raises ``RequestRefused``. The size limits are soft: the first
    partition that has anything gives at least one whole batch.
    """

    __slots__ = (
        "_find",
        "_found_bytes",
        "_is_urgent",
        "_max_bytes",
        "_min_bytes",
        "_readable",
        "_readable_bytes",
        "_reader",
        "_sizes",
        "results",
        "wanted",
    )

    def __init__(
        self,
        wanted: list[FetchPartition],
        min_bytes: int,
        max_bytes: int,
        reader: FetchedBy,
        find: Callable[[str, int], Replica],
    ) -> None:
        self.wanted = wanted
        self._reader = reader
        self._find = find
        self._max_bytes = max_bytes
        #: More than the response may hold is not waited for.
        self._min_bytes = min(min_bytes, max_bytes)
        #: Of whole batches, which the response holds.
        self._found_bytes = 0
        self._sizes = [0] * len(wanted)
        #: The same and what of further batches would fit. Batches go whole: their sum may stay below ``min_bytes`` for
        #: good although there is more to read than may be returned.
        self._readable_bytes = 0
        self._readable = [0] * len(wanted)
        self._is_urgent = False
        self.results: list[FetchResult] = []

    def __repr__(self) -> str:
        return f"<Reads {self._found_bytes} bytes of {len(self._sizes)} partitions>"

    def first(self, now_ms: int) -> bool:
        """Read all partitions of a request that has just arrived. True if that is enough to answer."""
        append = self.results.append
        for index in range(len(self._sizes)):
            append(self._read(index, True, now_ms))
        return self.is_enough()

    def first_in_steps(self, now_ms: int) -> Iterator[None]:
        """The same of a request that names very many, a step for each some of them; ask ``is_enough`` at the end."""
        for start in range(0, len(self._sizes), PARTITIONS_A_STEP):
            for index in range(start, min(start + PARTITIONS_A_STEP, len(self._sizes))):
                self.results.append(self._read(index, True, now_ms))
            yield

    def moved(self, replicas: Mapping[tuple[str, int], Replica]) -> list[int]:
        """The partitions that have another leader or watermark than when they were read, or more for a follower."""
        found = []
        for index, (wanted, result) in enumerate(zip(self.wanted, self.results, strict=True)):
            replica = replicas.get((result.topic, result.partition))
            leader = None if replica is None else replica.leader
            is_same = leader is not None and leader.high_watermark == result.high_watermark
            if is_same and replica is not None and self._reader.is_follower:
                is_same = replica.log.log_end_offset <= wanted.fetch_offset
            if not is_same:
                found.append(index)
        return found

    def again(self, indexes: Iterable[int] | None, now_ms: int) -> bool:
        """Read these partitions (None: all) again. True if that is enough to answer."""
        for index in range(len(self._sizes)) if indexes is None else indexes:
            self._found_bytes -= self._sizes[index]
            self._readable_bytes -= self._readable[index]
            self._sizes[index] = self._readable[index] = 0
            self.results[index] = self._read(index, False, now_ms)
        return self.is_enough()

    def again_in_steps(self, now_ms: int) -> Generator[None, None, list[FetchResult]]:
        """Read all again, of a request that names very many. Returns what was found."""
        for start in range(0, len(self._sizes), PARTITIONS_A_STEP):
            self.again(range(start, min(start + PARTITIONS_A_STEP, len(self._sizes))), now_ms)
            yield
        return self.results

    def add(self, wanted: FetchPartition) -> int:
        """One more partition, which is read when ``again`` is called with the index that is returned."""
        self.wanted.append(wanted)
        self._sizes.append(0)
        self._readable.append(0)
        self.results.append(fetch_error(wanted.topic, wanted.partition, ErrorCode.NONE))
        return len(self._sizes) - 1

    def _read(self, index: int, arrived: bool, now_ms: int) -> FetchResult:
        wanted = self.wanted[index]
        try:
            partition = self._find(wanted.topic, wanted.partition)
        except RequestRefused as error:
            self._is_urgent = True
            return fetch_error(wanted.topic, wanted.partition, error.error_code)
        found_bytes = self._found_bytes
        max_bytes = min(wanted.partition_max_bytes, self._max_bytes - found_bytes)
        result, readable_bytes, is_urgent = partition.read(
            wanted, self._reader, max_bytes, found_bytes == 0, arrived, now_ms
        )
        records = result.records
        if records is not None:
            self._sizes[index] = size = records.size if isinstance(records, FileRange) else len(records)
            self._found_bytes = found_bytes + size
        self._readable[index] = readable_bytes
        self._readable_bytes += readable_bytes
        if is_urgent:
            self._is_urgent = True
        return result

    def is_enough(self) -> bool:
        """Whether what was found may be answered without a wait."""
        return self._is_urgent or self._readable_bytes >= self._min_bytes
