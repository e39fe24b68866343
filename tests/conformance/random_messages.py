"""Random messages from their schemas, written by the plainest encoder there is, and their values as plain trees.

Owns how a message is drawn from one ``Random`` (hypothesis draws its seed: thousands of messages of hundreds of
layouts in seconds), the encoder after Kafka's protocol guide that shares nothing with kafka-python's, and that a struct
may end in tagged fields that nobody knows. Does not judge anything.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID

TEXTS = ["", "t", "a-b.c_d", "ünïcode", "𝄞 你好 \u202e", "\x00", "x" * 126, "y" * 127, "z" * 300, "é" * 64]
BLOBS = [b"", b"\x00", bytes(range(256)), b"\xff" * 126, b"\x80" * 127]
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308]
SIZES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
CODES = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d", "bool": ">?"}
#: The error codes that both know: a number beyond is an exception to kio.
LAST_ERROR_CODE = 133
#: What kio reads as a time, it reads as a float of seconds: the milliseconds of this century. Its durations are no
#: longer either.
LAST_TIME_MS = 1 << 42
NO_OPERATIONS = -(1 << 31)


# Random ones


def draw_message(message_class: Any, version: int, draw: Random) -> Any:
    """An instance with every field of this version set."""
    return message_class(**_values(message_class._struct, version, draw))


def _values(schema: Any, version: int, draw: Random) -> dict[str, Any]:
    return {field.name: _draw(field, version, draw) for field in _fields(schema, version)}


def _fields(schema: Any, version: int) -> list[Any]:
    return [field for field in schema.fields.values() if field.for_version_q(version)]


def _draw(field: Any, version: int, draw: Random) -> Any:
    if field.nullable_for_version_q(version) and draw.random() < 0.25:
        return None
    if field.is_struct_array():
        return [field.data_class(**_values(field, version, draw)) for _ in range(draw.choice((0, 1, 1, 2, 3)))]
    if field.is_array():
        # Now and then so many that a compact length takes two bytes.
        count = 130 if draw.random() < 0.02 else draw.choice((0, 1, 2, 4))
        return [_simple(field.array_of.type_str, field.name, draw) for _ in range(count)]
    if field.is_struct():
        values = _values(field, version, draw)
        if not field.tagged_field_q(version):
            return field.data_class(**values)
        # A tagged struct is absent when all of it is at its defaults; kafka-python says None and, given one, writes it.
        is_default = all(value == field.fields[name].default for name, value in values.items())
        return None if is_default or draw.random() < 0.3 else field.data_class(**values)
    return _simple(field.type_str, field.name, draw)


def _simple(kind: str, name: str, draw: Random) -> Any:
    if name.endswith("error_code"):
        return draw.randint(-1, LAST_ERROR_CODE)
    if name == "log_append_time_ms":
        return draw.choice((-1, 0, 1, LAST_TIME_MS, draw.randint(0, LAST_TIME_MS)))
    if name == "transaction_start_time_ms":
        return draw.choice((0, 1, LAST_TIME_MS, draw.randint(0, LAST_TIME_MS)))
    if name == "retention_time_ms":
        return draw.choice((-LAST_TIME_MS, -1, 0, 1, LAST_TIME_MS, draw.randint(-1, LAST_TIME_MS)))
    if kind in SIZES:
        least = -(1 << SIZES[kind] - 1)
        return draw.choice((least, least + 1, -2, -1, 0, 1, ~least - 1, ~least, draw.randint(least, ~least)))
    return _OTHERS[kind](draw)


_OTHERS: dict[str, Callable[[Random], Any]] = {
    "uint16": lambda draw: draw.choice((0, 1, 65_535, draw.randrange(65_536))),
    "float64": lambda draw: draw.choice(FLOATS),
    "bool": lambda draw: draw.random() < 0.5,
    "string": lambda draw: draw.choice(TEXTS),
    "bytes": lambda draw: draw.choice(BLOBS),
    "records": lambda draw: draw.choice(BLOBS),
    "uuid": lambda draw: draw.choice((None, UUID(int=1), UUID(int=(1 << 128) - 1), UUID(int=draw.getrandbits(128)))),
    "bitfield": lambda draw: draw.choice((None, set(), {0}, {30}, {0, 3, 31})),
}


# The smallest messages

_ZERO: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "uuid": None, "bitfield": set()}


def lists_of(message_class: Any, version: int) -> Iterator[tuple[str, ...]]:
    """The path of every list of a layout, from the outside in."""
    yield from _lists(message_class._struct, version, ())


def _lists(schema: Any, version: int, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field in _fields(schema, version):
        if field.is_array() or field.is_struct_array():
            yield (*before, field.name)
        if field.is_struct_array():
            yield from _lists(field, version, (*before, field.name))


def least_message(message_class: Any, version: int, path: tuple[str, ...], count: int) -> Any:
    """The smallest message that has ``count`` of the smallest elements in the list at ``path``."""
    return message_class(**_least_values(message_class._struct, version, path, count))


def _least_values(schema: Any, version: int, path: tuple[str, ...], count: int) -> dict[str, Any]:
    return {field.name: _least(field, version, path, count) for field in _fields(schema, version)}


def _least(field: Any, version: int, path: tuple[str, ...], count: int) -> Any:
    if field.is_struct() and field.tagged_field_q(version):
        return None
    here, deeper = path[:1] == (field.name,), path[1:]
    if field.is_struct_array():
        element = field.data_class(**_least_values(field, version, deeper if here else (), count))
        return [element] * ((1 if deeper else count) if here else 0)
    if field.is_array():
        return [_ZERO.get(field.array_of.type_str, 0)] * (count if here else 0)
    if field.is_struct():
        return field.data_class(**_least_values(field, version, (), count))
    return _ZERO.get(field.type_str, 0)


# The plainest encoder


def written(message: Any, version: int, stranger: Random | None = None) -> bytes:
    """The body of ``message``; with ``stranger``, structs end in tagged fields from the future as well."""
    return _struct(message._struct, message, version, message.flexible_version_q(version), stranger)


def _struct(schema: Any, item: Any, version: int, flexible: bool, stranger: Random | None) -> bytes:
    out = b""
    tags: dict[int, bytes] = {}
    for field in _fields(schema, version):
        value = getattr(item, field.name)
        if not field.tagged_field_q(version):
            out += _field(field, value, version, flexible, stranger)
        elif value != field.default:
            tags[field.tag] = _field(field, value, version, flexible, stranger)
    if not flexible:
        return out
    if stranger is not None and stranger.random() < 0.5:
        for tag in stranger.sample((700, 701, 16_384, (1 << 31) - 1), stranger.randint(1, 3)):
            tags[tag] = stranger.choice(BLOBS)
    out += _uvarint(len(tags))
    for tag in sorted(tags):
        out += _uvarint(tag) + _uvarint(len(tags[tag])) + tags[tag]
    return out


def _field(field: Any, value: Any, version: int, flexible: bool, stranger: Random | None) -> bytes:
    if field.is_struct_array() or field.is_array():
        if value is None:
            return _length(None, ">i", flexible)
        items = (
            _struct(field.array_of, item, version, flexible, stranger)
            if field.is_struct_array()
            else _plain(field.array_of.type_str, item, flexible)
            for item in value
        )
        return _length(len(value), ">i", flexible) + b"".join(items)
    if field.is_struct():
        if not field.nullable_for_version_q(version):
            return _struct(field, value, version, flexible, stranger)
        return b"\xff" if value is None else b"\x01" + _struct(field, value, version, flexible, stranger)
    return _plain(field.type_str, value, flexible)


def _plain(kind: str, value: Any, flexible: bool) -> bytes:
    if kind in CODES:
        return struct.pack(CODES[kind], value)
    if kind == "uuid":
        return bytes(16) if value is None else bytes(value.bytes)
    if kind == "bitfield":
        return struct.pack(">i", _operations(value))
    data = value.encode() if isinstance(value, str) else value
    return _length(None if data is None else len(data), ">h" if kind == "string" else ">i", flexible) + (data or b"")


def _length(count: int | None, plain: str, flexible: bool) -> bytes:
    if flexible:
        return _uvarint(0 if count is None else count + 1)
    return struct.pack(plain, -1 if count is None else count)


def _uvarint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return out + bytes((value,))


def _operations(bits: set[int] | None) -> int:
    number = NO_OPERATIONS if bits is None else sum(1 << bit for bit in bits)
    return number - (1 << 32) if number >= 1 << 31 else number


# What a message says


def tree(message: Any, version: int) -> dict[str, Any]:
    """The fields of this version by their names, in plain JSON as ``kio_child`` gives it."""
    return _tree(message._struct, message, version)


def _tree(schema: Any, item: Any, version: int) -> dict[str, Any]:
    return {field.name: _value(field, getattr(item, field.name), version) for field in _fields(schema, version)}


def _value(field: Any, value: Any, version: int) -> Any:
    if value is None and field.is_struct() and field.tagged_field_q(version):
        value = field.data_class()
    if value is None and field.type_str != "bitfield":
        return None
    if field.is_struct_array():
        return [_tree(field.array_of, item, version) for item in value]
    if field.is_array():
        return [_text(item) for item in value]
    if field.is_struct():
        return _tree(field, value, version)
    return _operations(value) if field.type_str == "bitfield" else _text(value)


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    return repr(value) if isinstance(value, float) else value
