"""Ways to tamper with rows of a history and with fields of them. What is written is well formed: end mark and all.

Owns no knowledge of what the verifier makes of it. Totals are rows too, and nobody adjusts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from verifier.evidence.arrow_stream import END_OF_STREAM, batch_message, split_messages
from verifier.evidence.history import SCHEMA, read_history

Row = dict[str, Any]

_WORDS = {"f": ["send", "poll", "note"], "type": ["ok", "fail", "info", "invoke"], "phase": ["load", "final"]}
#: Fields that belong together: a row is altered as a whole by shifting both.
_TOGETHER = (("first_sequence", "last_sequence"), ("first_offset", "last_offset"), ("invoke_ns", "complete_ns"))


def _rows(path: Path) -> list[Row]:
    return [{name: row[name] for name in SCHEMA.names} for row in read_history(path, with_totals=True).to_pylist()]


def _rewrite(path: Path, rows: list[Row], process: str | None = None, without: Sequence[str] = ()) -> None:
    """The same file with other rows, as if it had been written so."""
    whose = process or (rows[0]["process"] if rows else path.stem)
    fields = [each for each in SCHEMA if each.name not in without]
    schema = pa.schema(fields, metadata={"gapless.process": whose})
    table = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)
    messages = b"".join(bytes(batch_message(batch)) for batch in table.to_batches())
    path.write_bytes(bytes(schema.serialize()) + messages + END_OF_STREAM)


def _named(row: Row) -> str:
    return f"{row['f']}/{row['type']}"


def remove_row(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if not rows:
        return None
    gone = rows.pop(random.randrange(len(rows)))
    _rewrite(path, rows)
    return f"a row {_named(gone)} removed"


def remove_message(path: Path, random: Random) -> str | None:
    """The rows of one batch."""
    messages, closed = split_messages(memoryview(path.read_bytes()), str(path))
    if len(messages) < 2:
        return None
    del messages[random.randrange(1, len(messages))]
    path.write_bytes(b"".join(map(bytes, messages)) + (END_OF_STREAM if closed else b""))
    return "a message removed"


def repeat_message(path: Path, random: Random) -> str | None:
    messages, closed = split_messages(memoryview(path.read_bytes()), str(path))
    if len(messages) < 2:
        return None
    messages.insert(random.randrange(1, len(messages) + 1), messages[random.randrange(1, len(messages))])
    path.write_bytes(b"".join(map(bytes, messages)) + (END_OF_STREAM if closed else b""))
    return "a message repeated"


def lose_end(path: Path, _random: Random) -> str | None:
    data = path.read_bytes()
    if not data.endswith(END_OF_STREAM):
        return None
    path.write_bytes(data[: -len(END_OF_STREAM)])
    return "its end mark removed"


def repeat_row(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if not rows:
        return None
    row = random.choice(rows)
    rows.insert(random.randrange(len(rows) + 1), row)
    _rewrite(path, rows)
    return f"a row {_named(row)} repeated"


def alter_row(path: Path, random: Random) -> str | None:
    """Both sequences, both offsets or both times of a row shifted."""
    rows = _rows(path)
    if not rows:
        return None
    at, fields, by = random.randrange(len(rows)), random.choice(_TOGETHER), random.choice([-1, 1, 2, 1000, 10**9])
    rows[at] = {**rows[at], **{name: rows[at][name] + by for name in fields}}
    _rewrite(path, rows)
    return f"row {at} ({_named(rows[at])}): {' and '.join(fields)} shifted by {by}"


def swap_rows(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if len(rows) < 2:
        return None
    one, other = random.sample(range(len(rows)), 2)
    if rows[one] == rows[other]:
        return None
    rows[one], rows[other] = rows[other], rows[one]
    _rewrite(path, rows)
    return f"rows {one} ({_named(rows[other])}) and {other} ({_named(rows[one])}) swapped"


def remove_column(path: Path, random: Random) -> str | None:
    """A field of every row: that of one alone cannot be without its column."""
    name = random.choice(SCHEMA.names)
    _rewrite(path, _rows(path), without=(name,))
    return f"its column {name} removed"


def _another(name: str, value: Any, random: Random) -> Any:
    if name in _WORDS:
        return random.choice([word for word in _WORDS[name] if word != value])
    if name == "error":
        return "_MSG_TIMED_OUT: changed" if value is None else None
    if isinstance(value, str):
        return value + "x"
    return random.choice([value + 1, value + 1000, -1 if value != -1 else 0])


def alter_field(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if not rows:
        return None
    at, name = random.randrange(len(rows)), random.choice(SCHEMA.names)
    value, where = rows[at][name], _named(rows[at])
    rows[at] = {**rows[at], name: _another(name, value, random)}
    _rewrite(path, rows, path.stem)
    return f"row {at} ({where}): {name} {value!r:.30} became {rows[at][name]!r:.30}"


def repeat_field(path: Path, random: Random) -> str | None:
    """The value that one row has, in another row as well."""
    found = _two(path, random)
    if found is None:
        return None
    rows, one, other, name = found
    rows[other] = {**rows[other], name: rows[one][name]}
    _rewrite(path, rows, path.stem)
    return f"{name} of row {one} ({_named(rows[one])}) repeated in row {other} ({_named(rows[other])})"


def swap_fields(path: Path, random: Random) -> str | None:
    found = _two(path, random)
    if found is None:
        return None
    rows, one, other, name = found
    mine, theirs = rows[one][name], rows[other][name]
    rows[one], rows[other] = {**rows[one], name: theirs}, {**rows[other], name: mine}
    _rewrite(path, rows, path.stem)
    return f"{name} of rows {one} ({_named(rows[one])}) and {other} ({_named(rows[other])}) swapped"


def _two(path: Path, random: Random) -> tuple[list[Row], int, int, str] | None:
    """Two rows that differ in a field."""
    rows = _rows(path)
    names = [name for name in SCHEMA.names if len({row[name] for row in rows}) > 1]
    if not names:
        return None
    name = random.choice(names)
    one = random.randrange(len(rows))
    other = random.choice([at for at, row in enumerate(rows) if row[name] != rows[one][name]])
    return rows, one, other, name
