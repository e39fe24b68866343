"""Reads and writes JSON like Go's ``encoding/json`` (docs/reference/toxiproxy.md "JSON", "Errors").

When reading, everything after the first value is ignored. Field names match in any case, and the last of equal names
wins. Unknown fields are ignored, null means "not given", and an integer field accepts no string and no fraction. When
writing, there are no spaces, and ``< > &`` are escaped. Owns the messages of decoder errors, which are close to Go's;
clients must not rely on what follows ``bad request body: ``. Does not own which fields exist.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

GoKind = Literal["string", "bool", "int", "int64", "float32", "object"]

_INT64_MAX = 2**63 - 1
_WHITESPACE = re.compile(r"[ \t\n\r]*")
_INTEGER = re.compile(r"-?[0-9]+\Z")


class GoJsonError(ValueError):
    """A decoder error, with the message of Go's decoder."""


class Number(str):
    """A number as it was written, because whether ``1.5`` or ``1e3`` is valid depends on the field."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object as its pairs in order, so that the last of two equal names can win."""

    pairs: list[tuple[str, Json]]


Json: TypeAlias = "bool | str | Number | list[Json] | JsonObject | None"


def _reject_constant(text: str) -> NoReturn:
    raise GoJsonError(f"invalid character '{text.lstrip('-')[0]}' looking for beginning of value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=JsonObject, parse_int=Number, parse_float=Number, parse_constant=_reject_constant
)


def decode(body: bytes) -> Json:
    """The first JSON value of a body. Raises ``GoJsonError``."""
    text = body.decode("utf-8", "replace")
    match = _WHITESPACE.match(text)
    start = match.end() if match else 0
    if start == len(text):
        raise GoJsonError("EOF")
    try:
        value, _ = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise GoJsonError(_go_text(error.msg, text, error.pos)) from None
    except RecursionError:
        raise GoJsonError("exceeded max depth") from None
    result: Json = value
    return result


def _go_text(message: str, text: str, position: int) -> str:
    """Go's message for an error of Python's decoder."""
    rest = text[position:].strip(" \t\n\r")
    truncated_literal = rest != "" and any(word.startswith(rest) for word in ("true", "false", "null", "-"))
    if not rest or message.startswith("Unterminated string") or truncated_literal:
        return "unexpected EOF"
    character = _quote(rest[0])
    if message.startswith("Expecting property name"):
        return f"invalid character {character} looking for beginning of object key string"
    if message.startswith("Expecting ':'"):
        return f"invalid character {character} after object key"
    if message.startswith("Expecting ','"):
        return f"invalid character {character} after object key:value pair"
    if message.startswith("Invalid control character"):
        return f"invalid character {_quote(text[position])} in string literal"
    if message.startswith("Invalid \\uXXXX"):
        return "invalid character in \\u hexadecimal character escape"
    if message.startswith("Invalid \\escape"):
        return f"invalid character {_quote(text[position + 1 : position + 2])} in string escape code"
    return f"invalid character {character} looking for beginning of value"


def _quote(character: str) -> str:
    if character == "'":
        return "'\\''"
    if character == '"':
        return "'\"'"
    return "'" + character.encode("unicode_escape").decode() + "'"


def read_struct(
    value: Json, struct_name: str, fields: Mapping[str, GoKind], *, package: str = "", path: str = ""
) -> dict[str, Json]:
    """The non-null fields of a struct, by their canonical names, each with a value of its kind.

    ``struct_name``, ``package`` and ``path`` are for error messages. Values of kind ``object`` are ``JsonObject``;
    integers and floats are still ``Number``, to be converted with :func:`integer` and :func:`float32`. Raises
    ``GoJsonError`` about the first field with a wrong type, after reading all fields, as Go does.
    """
    if value is None:
        return {}
    if not isinstance(value, JsonObject):
        raise GoJsonError(f"json: cannot unmarshal {type_name(value)} into Go value of type {package}{struct_name}")
    canonical = {name.casefold(): name for name in fields}
    found: dict[str, Json] = {}
    first_error: GoJsonError | None = None
    for key, item in value.pairs:
        name = canonical.get(key) or canonical.get(key.casefold())
        if name is None or item is None:
            continue
        if _fits(item, fields[name]):
            found[name] = item
        elif first_error is None:
            literal = f" {item}" if isinstance(item, Number) and fields[name] in ("int", "int64", "float32") else ""
            leaf = "toxics.NoopToxic" if fields[name] == "object" else fields[name]
            first_error = GoJsonError(
                f"json: cannot unmarshal {type_name(item)}{literal} into Go struct field {struct_name}.{path}{name}"
                f" of type {leaf}"
            )
    if first_error is not None:
        raise first_error
    return found


def _fits(value: Json, kind: GoKind) -> bool:
    match kind:
        case "string":
            return isinstance(value, str) and not isinstance(value, Number)
        case "bool":
            return isinstance(value, bool)
        case "int" | "int64":
            return isinstance(value, Number) and _integer_or_none(value) is not None
        case "float32":
            return isinstance(value, Number) and abs(float(value)) <= 3.4028235e38
        case "object":
            return isinstance(value, JsonObject)


def _integer_or_none(literal: Number) -> int | None:
    if not _INTEGER.match(literal) or len(literal) > 20:
        return None
    number = int(literal)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None


def type_name(value: Json) -> str:
    """Go's name for the JSON type of a value."""
    match value:
        case bool():
            return "bool"
        case Number():
            return "number"
        case str():
            return "string"
        case JsonObject():
            return "object"
        case _:
            return "array"


def text(value: Json) -> str:
    """The text of a string field. A lone surrogate becomes U+FFFD, as in Go."""
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def integer(value: Json) -> int:
    """The number in an integer field that :func:`read_struct` has checked."""
    return int(str(value))


def float32(value: Json) -> float:
    """The number in a float field as Go prints a float32: the shortest decimal that is the same float32."""
    packed = struct.pack("f", float(str(value)))
    exact: float = struct.unpack("f", packed)[0]
    for digits in range(1, 10):
        short = float(f"{exact:.{digits}g}")
        if struct.pack("f", short) == packed:
            return short
    return exact


def encode(value: object) -> bytes:
    """A value as Go's ``json.Marshal`` writes it: compact, with keys in their order, and ``< > &`` escaped."""
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written.encode()
