"""What a batch of ``__consumer_offsets`` is to a ``GroupLoader``.

Owns the way from a header and its records to a ``LoadedBatch``. Does not own the reading (``coordinator_loading``), nor
what records mean.
"""

from __future__ import annotations

import struct

from cluster.broker.coordinator_loading import TakeBatch
from cluster.coordinator.group.loading import GroupLoader, LoadedBatch
from cluster.protocol.batch import BatchHeader
from cluster.protocol.records import Record

_MARKER_KEY = struct.Struct(">hh")
_ABORT, _COMMIT = 0, 1


def feeding(loader: GroupLoader) -> TakeBatch:
    """What gives each batch that is read to ``loader``."""
    return lambda header, records: loader.feed(_loaded(header, records))


def _loaded(header: BatchHeader, records: list[Record]) -> LoadedBatch:
    if header.is_control:
        is_committed = _marker(records)
        if is_committed is not None:
            return LoadedBatch(header.base_offset, (), header.producer_id, True, is_committed)
        return LoadedBatch(header.base_offset)
    pairs = tuple((record.key or b"", record.value) for record in records)
    return LoadedBatch(header.base_offset, pairs, header.producer_id, header.is_transactional)


def _marker(records: list[Record]) -> bool | None:
    """Whether a control batch commits; None if it is of another kind."""
    key = records[0].key if records else None
    if key is None or len(key) < _MARKER_KEY.size:
        return None
    _version, kind = _MARKER_KEY.unpack_from(key)
    return kind == _COMMIT if kind in (_ABORT, _COMMIT) else None
