"""A decoder for untrusted bytes over kafka-python's schemas: the same messages, trusting no length.

kafka-python's generated decoders are made for answers of a broker: a string or bytes field may end beyond the
frame, a varint may be as long as the frame, every struct with tagged fields copies the rest of the frame, and null
passes where the schema forbids it. Here every length is compared with what is left, the elements of all arrays are
counted against ``MAX_ELEMENTS``, and anything wrong raises ``MalformedRequest``. Encoding is kafka-python's own.

Owns the walk over a schema. Does not own the schemas, the headers, nor what a version means.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from cluster.protocol.errors import MalformedRequest
from cluster.protocol.kafka_schemas import ApiMessage
from cluster.protocol.primitives import (
    INT16,
    INT32,
    MAX_ELEMENTS,
    Buffer,
    check_count,
    read_slice,
    read_tags,
    read_text,
    read_uvarint,
    refusing_malformed,
)

_Message = TypeVar("_Message", bound="ApiMessage")

#: Bytes of a text in a request: what an int16 can count, also where the size is a varint (as in Kafka).
MOST_TEXT_BYTES = 32_767


class Budget:
    """How many array elements one message may still have, and how long each of its texts may be (None: any length)."""

    __slots__ = ("left", "most_text_bytes")

    def __init__(self, most_text_bytes: int | None = None) -> None:
        self.left = MAX_ELEMENTS
        self.most_text_bytes = most_text_bytes

    def __repr__(self) -> str:
        return f"Budget({self.left} elements left)"

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise MalformedRequest(f"more than {MAX_ELEMENTS} array elements")


Read = Callable[[memoryview, int, Budget], tuple[Any, int]]


@dataclass(frozen=True, slots=True)
class FieldReader:
    """How one field is read, and the least number of bytes it takes."""

    read: Read
    least_bytes: int


#: struct format and size of the types with a fixed size that need no conversion
_FIXED = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d", "bool": "?"}

#: What Kafka's "authorized operations" are when they were not asked for: INT32_MIN, only the highest bit set.
_NO_OPERATIONS = 1 << 31


def decode(
    message_class: type[_Message],
    version: int,
    body: Buffer,
    *,
    rest_allowed: bool = False,
    most_text_bytes: int | None = None,
) -> _Message:
    """Decode the body of a message (no header) into an instance of ``message_class``.

    Raises ``MalformedRequest``, also for a version that the class does not have or, unless ``rest_allowed``, for bytes
    after the message.
    """
    untyped: Any = message_class
    name: str = untyped.name
    if not 0 <= version <= untyped.max_version:
        raise MalformedRequest(f"{name} version {version}")
    view = memoryview(body)
    message: _Message
    with refusing_malformed(name):
        message, position = _message_reader(untyped, version).read(view, 0, Budget(most_text_bytes))
    if position != len(view) and not rest_allowed:
        raise MalformedRequest(f"{len(view) - position} bytes after a {name}")
    message._header = message._min_version = message._max_version = None
    return message


@cache
def _message_reader(message_class: Any, version: int) -> FieldReader:
    flexible = message_class.flexible_version_q(version)
    # The schema holds only a weak reference to the class of the message itself.
    return _struct_reader(message_class._struct, message_class, version, flexible)


def _struct_reader(schema: Any, data_class: Any, version: int, flexible: bool) -> FieldReader:
    steps, least_bytes = _steps(schema.untagged_fields(version), version, flexible)
    tagged = _tagged_readers(schema, version) if flexible else {}

    def read(view: memoryview, position: int, budget: Budget) -> tuple[Any, int]:
        item = object.__new__(data_class)
        item._version = version
        item.tags = item.unknown_tags = None
        for fixed, reader, names in steps:
            if fixed is not None:
                for name, value in zip(names, fixed.unpack_from(view, position), strict=True):
                    setattr(item, name, value)
                position += fixed.size
            else:
                value, position = reader(view, position, budget)
                setattr(item, names[0], value)
        if flexible:
            if view[position] == 0:
                position += 1
            else:
                position = _read_tagged(item, tagged, view, position, budget)
        return item, position

    return FieldReader(read, least_bytes + flexible)


#: One step reads either consecutive fixed-size fields at once, or a single other field.
_Step = tuple[struct.Struct | None, Any, Sequence[str]]


def _steps(fields: Sequence[Any], version: int, flexible: bool) -> tuple[list[_Step], int]:
    steps: list[_Step] = []
    least_bytes = 0
    fixed_format, fixed_names = "", []
    for field in [*fields, None]:
        code = _FIXED.get(field.type_str) if field is not None else None
        if code is not None:
            fixed_format += code
            fixed_names.append(field.name)
            continue
        if fixed_names:
            fixed = struct.Struct(">" + fixed_format)
            steps.append((fixed, None, tuple(fixed_names)))
            least_bytes += fixed.size
            fixed_format, fixed_names = "", []
        if field is not None:
            reader = _field_reader(field, version, flexible)
            steps.append((None, reader.read, (field.name,)))
            least_bytes += reader.least_bytes
    return steps, least_bytes


def _tagged_readers(schema: Any, version: int) -> dict[int, tuple[str, FieldReader]]:
    fields = [
        field for field in schema.fields.values() if field.for_version_q(version) and field.tagged_field_q(version)
    ]
    return {field.tag: (field.name, _field_reader(field, version, True)) for field in fields}


def _read_tagged(
    item: Any, known: dict[int, tuple[str, FieldReader]], view: memoryview, position: int, budget: Budget
) -> int:
    tags, position = read_tags(view, position, known)
    for tag, value in tags:
        name, reader = known[tag]
        decoded, end = reader.read(value, 0, budget)
        if end != len(value):
            raise MalformedRequest(f"{len(value) - end} bytes after the tagged field {name}")
        setattr(item, name, decoded)
        if item.tags is None:
            item.tags = set()
        item.tags.add(name)
    return position


def _field_reader(field: Any, version: int, flexible: bool) -> FieldReader:
    nullable = field.nullable_for_version_q(version)
    if field.is_struct_array():
        element = _struct_reader(field.array_of, field.data_class, version, flexible)
        return _array_reader(element, nullable, flexible)
    if field.is_array():
        return _array_reader(_simple_reader(field.array_of.type_str, False, flexible), nullable, flexible)
    if field.is_struct():
        inner = _struct_reader(field, field.data_class, version, flexible)
        return _nullable_struct_reader(inner) if nullable else inner
    return _simple_reader(field.type_str, nullable, flexible)


def _simple_reader(type_name: str, nullable: bool, flexible: bool) -> FieldReader:
    if type_name in _FIXED:
        return _fixed_reader(struct.Struct(">" + _FIXED[type_name]))
    if type_name == "string":
        return _sized_reader(read_text, INT16, nullable, flexible, is_text=True)
    if type_name in ("bytes", "records"):
        return _sized_reader(_read_bytes, INT32, nullable, flexible)
    if type_name == "uuid":
        return FieldReader(_read_uuid, 16)
    if type_name == "bitfield":
        return FieldReader(_read_bits, 4)
    raise TypeError(f"no reader for schema type {type_name}")


def _fixed_reader(fixed: struct.Struct) -> FieldReader:
    def read(view: memoryview, position: int, _: Budget) -> tuple[Any, int]:
        return fixed.unpack_from(view, position)[0], position + fixed.size

    return FieldReader(read, fixed.size)


def _sized_reader(
    read_value: Callable[[memoryview, int, int], tuple[Any, int]],
    plain: struct.Struct,
    nullable: bool,
    flexible: bool,
    is_text: bool = False,
) -> FieldReader:
    def read(view: memoryview, position: int, budget: Budget) -> tuple[Any, int]:
        if flexible:
            size, position = read_uvarint(view, position)
            size -= 1
        else:
            (size,) = plain.unpack_from(view, position)
            position += plain.size
        if size == -1:
            if not nullable:
                raise MalformedRequest("null where the schema has none")
            return None, position
        if is_text and budget.most_text_bytes is not None and size > budget.most_text_bytes:
            raise MalformedRequest(f"string of {size} bytes")
        return read_value(view, position, size)

    return FieldReader(read, 1 if flexible else plain.size)


def _array_reader(element: FieldReader, nullable: bool, flexible: bool) -> FieldReader:
    read_element, least_bytes = element.read, element.least_bytes

    def read(view: memoryview, position: int, budget: Budget) -> tuple[Any, int]:
        if flexible:
            count, position = read_uvarint(view, position)
            count -= 1
        else:
            (count,) = INT32.unpack_from(view, position)
            position += 4
        if count == -1 and nullable:
            return None, position
        budget.take(check_count(view, position, count, least_bytes))
        items = []
        for _ in range(count):
            item, position = read_element(view, position, budget)
            items.append(item)
        return items, position

    return FieldReader(read, 1 if flexible else 4)


def _nullable_struct_reader(inner: FieldReader) -> FieldReader:
    def read(view: memoryview, position: int, budget: Budget) -> tuple[Any, int]:
        # An int8 goes before a nullable struct: -1 is null (KIP-893).
        if view[position] == 0xFF:
            return None, position + 1
        return inner.read(view, position + 1, budget)

    return FieldReader(read, 1)


def _read_bytes(view: memoryview, position: int, size: int) -> tuple[bytes, int]:
    value, position = read_slice(view, position, size)
    return bytes(value), position


def _read_uuid(view: memoryview, position: int, _: Budget) -> tuple[UUID | None, int]:
    value, position = read_slice(view, position, 16, "uuid")
    data = bytes(value)
    return (UUID(bytes=data) if any(data) else None), position


def _read_bits(view: memoryview, position: int, _: Budget) -> tuple[set[int] | None, int]:
    (value,) = struct.unpack_from(">I", view, position)
    if value == _NO_OPERATIONS:
        return None, position + 4
    return {bit for bit in range(32) if value >> bit & 1}, position + 4
