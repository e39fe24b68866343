"""The parts of a dump: entries, one per line, and damage. Owns how both look as text and as JSON. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cluster.process.one_line import escaped_json, printable

TOO_DEEP = "its values are nested too deeply"
#: The most characters of a key, header or value in text. JSON has all of them.
SHOWN_CHARACTERS = 80


class Entry(NamedTuple):
    """One line: its fields in order. ``offsets`` is the range of offsets that it covers, ``depth`` its indentation."""

    fields: Mapping[str, object]
    offsets: tuple[int, int] | None = None
    depth: int = 0


class DamagedPart(NamedTuple):
    """Damage: what is wrong, and where. Entries that can still be read follow."""

    text: str


Lines = Iterator[Entry | DamagedPart]


def as_json(entry: Entry) -> str:
    """An entry as JSON, with letters of all scripts, but without characters that a terminal would interpret."""
    return escaped_json(entry.fields)


def as_text(entry: Entry) -> str:
    """An entry as text, always on one line."""
    return "  " * entry.depth + printable("  ".join(f"{name}={_shown(value)}" for name, value in entry.fields.items()))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_shown(inner)}" for name, inner in value.items()) + "}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    rest = len(text) - SHOWN_CHARACTERS
    return text if rest <= 0 else f"{text[:SHOWN_CHARACTERS]}... ({rest} more)"


def readable(data: bytes | None) -> str | None:
    """Bytes as text if they are printable UTF-8, else as ``0x`` and hex digits; None for None."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else f"0x{data.hex()}"
