"""FetchedBlock: what one fetch brought of one partition, handed out batch by batch.

Owns the reading of batches: checksums, records below the position, control batches, and what aborted transactions wrote
(KIP-98). A batch is unpacked in one go, when it is its turn. Does not own positions. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial

from cluster.client.consumer.results import CREATE_TIME, LOG_APPEND_TIME, ConsumerRecord, CorruptRecord
from cluster.protocol.batch import HEADER_BYTES, BatchHeader, crc_ok, parse_header
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import unpack_records
from cluster.topic_partition import TopicPartition

#: The key of a control record: version, type.
_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0

_new_record: Callable[[tuple[object, ...]], ConsumerRecord] = partial(tuple.__new__, ConsumerRecord)


class FetchedBlock:
    """NOT thread-safe. ``next_offset`` is where reading continues after what was taken, ``leader_epoch`` that of the
    batch before it (-1: not known).

    ``aborted`` is (producer id, first offset) of each aborted transaction; None reads what they wrote too.
    """

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_at",
        "_batch_end",
        "_batches",
        "_check_crcs",
        "_ready",
        "_taken",
        "key",
        "leader_epoch",
        "next_offset",
    )

    def __init__(
        self,
        key: TopicPartition,
        fetch_offset: int,
        batches: bytes,
        leader_epoch: int = -1,
        *,
        check_crcs: bool,
        aborted: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.key = key
        self.next_offset = fetch_offset
        self.leader_epoch = leader_epoch
        self._batches = batches
        self._check_crcs = check_crcs
        # Latest first: they are taken from the end.
        self._aborted = None if aborted is None else sorted(aborted, key=lambda entry: -entry[1])
        self._aborted_producers: set[int] = set()
        self._at = 0
        # Of the batch whose turn it is: its records, how many of them were taken, and where the next batch begins.
        self._ready: list[ConsumerRecord] = []
        self._taken = 0
        self._batch_end = fetch_offset

    def __repr__(self) -> str:
        return f"FetchedBlock({self.key[0]}-{self.key[1]} at {self.next_offset}, {self.left_bytes} bytes)"

    @property
    def left_bytes(self) -> int:
        """Bytes of batches that were not unpacked yet."""
        return len(self._batches) - self._at

    @property
    def is_drained(self) -> bool:
        """Whether there is certainly nothing more to take."""
        return self._taken == len(self._ready) and self.left_bytes < HEADER_BYTES

    def take(self, limit: int) -> list[ConsumerRecord]:
        """The next records, of one batch, at most ``limit``; empty when there are no more.

        Raises ``CorruptRecord``, and again if called again: a block does not get beyond what is wrong.
        """
        while self._taken == len(self._ready):
            self.next_offset = max(self.next_offset, self._batch_end)
            header = self._next_header()
            if header is None:
                return []
            self._ready, self._taken = self._read(header), 0
            self._at += header.size_bytes
            self._batch_end = header.next_offset
            self.leader_epoch = header.leader_epoch
        begin = self._taken
        self._taken = min(begin + limit, len(self._ready))
        taken = self._ready[begin : self._taken]
        is_last = self._taken == len(self._ready)
        self.next_offset = self._batch_end if is_last else self._ready[self._taken].offset
        return taken

    def _next_header(self) -> BatchHeader | None:
        """The header of the next whole batch; None at the end, where a part of one may stand, behind a whole one."""
        left = self.left_bytes
        if left >= HEADER_BYTES:
            try:
                header = parse_header(self._batches, self._at)
            except CorruptBatch as error:
                raise CorruptRecord(self.key, self.next_offset, str(error)) from error
            if header.size_bytes <= left:
                return header
        if left and not self._at:
            # Brokers send the first one whole, however large it is (KIP-74): the same again would not help.
            raise CorruptRecord(self.key, self.next_offset, "the response holds no whole batch")
        return None

    def _read(self, header: BatchHeader) -> list[ConsumerRecord]:
        """The records of a batch that a program may see."""
        if self._check_crcs and not crc_ok(self._batches, self._at, header.size_bytes):
            raise CorruptRecord(self.key, header.base_offset, "the checksum of the batch is wrong")
        try:
            is_aborted = self._aborted is not None and self._is_aborted(header)
            if header.is_control or is_aborted or header.next_offset <= self.next_offset:
                return []
            fields = unpack_records(header, self._packed(header))
        except CorruptBatch as error:
            raise CorruptRecord(self.key, header.base_offset, str(error)) from error
        topic, partition = self.key
        kind = LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME
        epoch = header.leader_epoch
        records = [
            _new_record((topic, partition, offset, timestamp, kind, key, value, headers, epoch))
            for offset, timestamp, key, value, headers in fields
        ]
        if header.base_offset < self.next_offset:
            return [record for record in records if record.offset >= self.next_offset]
        return records

    def _is_aborted(self, header: BatchHeader) -> bool:
        """Whether a transaction wrote this batch that was aborted; takes note of markers (KIP-98)."""
        if header.producer_id < 0:
            return False
        while self._aborted and self._aborted[-1][1] <= header.last_offset:
            self._aborted_producers.add(self._aborted.pop()[0])
        if header.is_control:
            if header.producer_id in self._aborted_producers and self._is_abort_marker(header):
                self._aborted_producers.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._aborted_producers

    def _is_abort_marker(self, header: BatchHeader) -> bool:
        for _offset, _timestamp, key, _value, _headers in unpack_records(header, self._packed(header)):
            if key is not None and len(key) >= _CONTROL_KEY.size:
                return bool(_CONTROL_KEY.unpack_from(key)[1] == _ABORT)
        return False

    def _packed(self, header: BatchHeader) -> memoryview:
        return memoryview(self._batches)[self._at + HEADER_BYTES : self._at + header.size_bytes]
