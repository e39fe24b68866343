"""Arrow's stream format as bytes: one batch as a message, and the messages of a file that may be torn at its end.

Owns the form of messages. Does not own columns, nor files (``verifier.evidence.history``).
"""

from __future__ import annotations

import struct

import pyarrow as pa

#: Arrow's end of a stream.
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"

#: Rows are alike, column by column: compressed they take a tenth of the room. Arrow's readers know it by themselves.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


class HistoryError(Exception):
    """A history file is damaged before its tail, or is no history."""


def check(rows: pa.Table | pa.RecordBatch) -> None:
    """Raises ``pa.ArrowInvalid`` for what reading lets pass, and anyone who calculates with it does not survive, or
    overlooks: text beyond its buffer, which ends the process, and nothing where the schema says there is something."""
    rows.validate(full=True)
    for column in rows.schema:
        if not column.nullable and rows.column(column.name).null_count:
            raise pa.ArrowInvalid(f"the column {column.name} has nothing in some rows")


def batch_message(batch: pa.RecordBatch) -> memoryview:
    """One batch as a message of its stream: a stream of its own without its schema and its end."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as stream:
        stream.write_batch(batch)
    return memoryview(sink.getvalue())[batch.schema.serialize().size : -len(END_OF_STREAM)]


def split_messages(data: memoryview, path: str) -> tuple[list[memoryview], bool]:
    """Whole messages (the schema first) and whether the end mark follows them. Raises ``HistoryError``.

    Arrow's encapsulated form: 0xFFFFFFFF, int32 metadata size (0 ends the stream), metadata, body.
    """
    messages: list[memoryview] = []
    position = 0
    while len(data) - position >= 8:
        mark, metadata_size = struct.unpack_from("<Ii", data, position)
        if mark != 0xFFFFFFFF or metadata_size < 0:
            raise HistoryError(f"{path}: no Arrow message at byte {position}")
        if not metadata_size:
            if position + 8 != len(data):
                raise HistoryError(f"{path}: {len(data) - position - 8} bytes after the end mark")
            return messages, True
        body_start = position + 8 + metadata_size
        if body_start > len(data):
            break
        body_size = _body_size(data[position + 8 : body_start], path, position)
        if body_start + body_size > len(data):
            break
        messages.append(data[position : body_start + body_size])
        position = body_start + body_size
    return messages, False


def _body_size(metadata: memoryview, path: str, position: int) -> int:
    """``bodyLength`` of an Arrow ``Message``: field 3 of its flatbuffer table (format/Message.fbs)."""
    try:
        (table,) = struct.unpack_from("<I", metadata)
        (vtable_distance,) = struct.unpack_from("<i", metadata, table)
        vtable = table - vtable_distance
        (vtable_size,) = struct.unpack_from("<H", metadata, vtable)
        if vtable_size < 12:
            return 0
        (field_offset,) = struct.unpack_from("<H", metadata, vtable + 10)
        size: int = struct.unpack_from("<q", metadata, table + field_offset)[0] if field_offset else 0
    except struct.error:
        size = -1
    if size < 0:
        raise HistoryError(f"{path}: damaged Arrow message at byte {position}")
    return size
