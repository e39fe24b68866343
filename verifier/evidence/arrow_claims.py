"""What the messages of a history claim: how large they become, before anything is decompressed (format/Message.fbs).

Owns the bound on one message, and which messages are read together. Does not own the form of a stream
(``verifier.evidence.arrow_stream``).
"""

from __future__ import annotations

import struct

from verifier.evidence.arrow_stream import HistoryError

#: What one message may take when it is decompressed, and its rows. A writer's messages have 4,096 rows and a few
#: megabytes at most; zeros are compressed to a forty-thousandth, so a small file could claim any amount.
MAX_MESSAGE_BYTES = 128 << 20
MAX_MESSAGE_ROWS = 1_000_000
#: The columns of a history have about 70 buffers.
_MAX_BUFFERS = 1_000
#: ``MetadataVersion`` and ``MessageHeader`` in format/Message.fbs.
_VERSION_5 = 4
_RECORD_BATCH = 3


def grouped(messages: list[memoryview], most: int, path: str) -> list[list[memoryview]]:
    """Groups of at most ``most`` messages to read together; without messages, one empty group.

    Raises ``HistoryError`` for what is too large. No message is decompressed before all have said what they take.
    """
    groups: list[list[memoryview]] = [[]]
    group_bytes = 0
    for message in messages:
        (metadata_size,) = struct.unpack_from("<i", message, 4)
        size_bytes = claimed_by(message[8 : 8 + metadata_size], message[8 + metadata_size :], path)
        if groups[-1] and (len(groups[-1]) == most or group_bytes + size_bytes > MAX_MESSAGE_BYTES):
            groups.append([])
            group_bytes = 0
        groups[-1].append(message)
        group_bytes += size_bytes
    return groups


def claimed_by(metadata: memoryview, body: memoryview, path: str) -> int:
    """What the buffers of a batch take when they are decompressed, as the message itself says: nothing is decompressed.

    Arrow allocates what is claimed before it looks at the data. Raises ``HistoryError`` for more than one message may
    claim, and for a message that is no batch.
    """
    try:
        rows, sizes = _claims(metadata, body)
    except (struct.error, ValueError, IndexError) as error:
        raise HistoryError(f"{path}: damaged Arrow message: {error}") from error
    if rows > MAX_MESSAGE_ROWS:
        raise HistoryError(f"{path}: a message claims {rows:,} rows; at most {MAX_MESSAGE_ROWS:,} are read")
    if sizes > MAX_MESSAGE_BYTES:
        raise HistoryError(
            f"{path}: a message claims {sizes:,} bytes when it is decompressed; at most {MAX_MESSAGE_BYTES:,} are read"
        )
    return sizes


def _claims(metadata: memoryview, body: memoryview) -> tuple[int, int]:
    """The rows of a ``RecordBatch`` and the sizes of all its buffers together. Raises what damage raises."""
    message = _root(metadata)
    version = _field(metadata, message, 0)
    # Older ones may be compressed in ways that are told elsewhere, and so may those with metadata of their own.
    if not version or struct.unpack_from("<h", metadata, version)[0] != _VERSION_5 or _field(metadata, message, 4):
        raise ValueError("it is of another version than gapless writes")
    kind = _field(metadata, message, 1)
    if not kind or metadata[kind] != _RECORD_BATCH:
        raise ValueError("it is no batch of rows")
    batch = _target(metadata, _field(metadata, message, 2))
    length = _field(metadata, batch, 0)
    rows: int = struct.unpack_from("<q", metadata, length)[0] if length else 0
    vector = _target(metadata, _field(metadata, batch, 2))
    (count,) = struct.unpack_from("<I", metadata, vector)
    if count > _MAX_BUFFERS:
        raise ValueError(f"it has {count} buffers")
    is_compressed = bool(_field(metadata, batch, 3))
    total = 0
    for offset, size in struct.iter_unpack("<qq", metadata[vector + 4 : vector + 4 + 16 * count]):
        if is_compressed and size > 0:
            # A compressed buffer begins with its size when it is decompressed; -1: it is as it was.
            (plain,) = struct.unpack_from("<q", body, offset)
            total += size if plain == -1 else max(0, plain)
        else:
            total += max(0, size)
    return rows, total


def _root(data: memoryview) -> int:
    """Where the table of a flatbuffer is."""
    root: int = struct.unpack_from("<I", data)[0]
    return root


def _field(data: memoryview, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 if the table does not have it."""
    (vtable_distance,) = struct.unpack_from("<i", data, table)
    vtable = table - vtable_distance
    (vtable_size,) = struct.unpack_from("<H", data, vtable)
    if vtable_size < 6 + 2 * number:
        return 0
    (field_offset,) = struct.unpack_from("<H", data, vtable + 4 + 2 * number)
    return table + field_offset if field_offset else 0


def _target(data: memoryview, field: int) -> int:
    """Where that is to which a field of a flatbuffer's table points."""
    if not field:
        raise ValueError("it lacks a part")
    (distance,) = struct.unpack_from("<I", data, field)
    return field + int(distance)
