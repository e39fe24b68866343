"""Ways to tamper with one piece of a run's evidence: a file, a line, a row, a field or a byte of it. Drawn by a seed.

Each way takes the directory of a copy and a generator, changes one thing, and says what it did. Nothing here knows what
the verifier makes of it. ``Tampering.path`` is the file that was touched, by its path within the run directory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from verifier.evidence.arrow_stream import END_OF_STREAM, batch_message, split_messages
from verifier.evidence.history import SCHEMA, read_history


class Tampering(NamedTuple):
    """What was done to which file."""

    path: str
    how: str


Way = Callable[[Path, Random], str | None]


def files(run: Path, *patterns: str) -> list[Path]:
    """The files that fit one of the patterns, in order."""
    return sorted(path for pattern in patterns for path in run.glob(pattern) if path.is_file())


# ------------------------------------------------------------------------------------------------- whole files


def remove(path: Path, _random: Random) -> str:
    path.unlink()
    return "removed"


def empty(path: Path, _random: Random) -> str | None:
    if not path.stat().st_size:
        return None
    path.write_bytes(b"")
    return "emptied"


def cut_short(path: Path, random: Random) -> str | None:
    size = path.stat().st_size
    if size < 2:
        return None
    kept = random.randrange(1, size)
    with path.open("r+b") as file:
        file.truncate(kept)
    return f"cut to {kept} of {size} bytes"


def flip_byte(path: Path, random: Random) -> str | None:
    data = bytearray(path.read_bytes())
    if not data:
        return None
    at = random.randrange(len(data))
    data[at] ^= 1 << random.randrange(8)
    path.write_bytes(bytes(data))
    return f"a bit of byte {at} flipped"


def insert_byte(path: Path, random: Random) -> str:
    data = path.read_bytes()
    at = random.randrange(len(data) + 1)
    path.write_bytes(data[:at] + bytes([random.randrange(256)]) + data[at:])
    return f"a byte inserted at {at}"


def append_copy(path: Path, random: Random) -> str | None:
    data = path.read_bytes()
    if not data:
        return None
    tail = data[-random.randrange(1, min(len(data), 400) + 1) :]
    path.write_bytes(data + tail)
    return f"its last {len(tail)} bytes repeated"


def swap_with_sibling(path: Path, random: Random) -> str | None:
    others = [each for each in path.parent.iterdir() if each != path and each.suffix == path.suffix and each.is_file()]
    others = [each for each in sorted(others) if each.read_bytes() != path.read_bytes()]
    if not others:
        return None
    other = random.choice(others)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)
    return f"swapped with {other.name}"


def copy_beside(path: Path, _random: Random) -> str:
    shutil.copy(path, path.with_name(f"{path.stem}-copy{path.suffix}"))
    return f"copied as {path.stem}-copy{path.suffix}"


WHOLE: tuple[Way, ...] = (
    remove, empty, cut_short, flip_byte, flip_byte, insert_byte, append_copy, swap_with_sibling, copy_beside,
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------- JSON


def change_leaf(value: Any, random: Random) -> tuple[Any, str]:
    """The value with one thing in it changed, removed or repeated; and what was done."""
    if isinstance(value, dict) and value:
        key = random.choice(sorted(value))
        if random.random() < 0.15:
            return {name: each for name, each in value.items() if name != key}, f"{key} removed"
        changed, how = change_leaf(value[key], random)
        return {**value, key: changed}, f"{key}.{how}"
    if isinstance(value, list) and value:
        at, roll = random.randrange(len(value)), random.random()
        if roll < 0.15:
            return value[:at] + value[at + 1 :], f"[{at}] removed"
        if roll < 0.25:
            return [*value, value[at]], f"[{at}] repeated"
        changed, how = change_leaf(value[at], random)
        return [*value[:at], changed, *value[at + 1 :]], f"[{at}].{how}"
    return _another(value, random)


def _another(value: Any, random: Random) -> tuple[Any, str]:
    if isinstance(value, bool):
        return not value, f"{value} negated"
    if isinstance(value, int | float):
        other = random.choice([value + 1, value - 1, -value - 1, value * 2 + 1, 0 if value else 7])
        return other, f"{value} became {other}"
    if isinstance(value, str):
        other = random.choice([value + "x", value[:-1] + "y", "", "none"])
        return (other, f"{value!r:.30} became {other!r:.30}") if other != value else (value + "z", "a letter more")
    return 1, f"{value!r} became 1"


def change_json(path: Path, random: Random) -> str | None:
    value = json.loads(path.read_text(encoding="utf-8"))
    changed, how = change_leaf(value, random)
    if changed == value:
        return None
    path.write_text(json.dumps(changed, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return how


# ------------------------------------------------------------------------------------------------ lines of JSON


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def remove_line(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if not lines:
        return None
    at = random.randrange(len(lines))
    _write_lines(path, lines[:at] + lines[at + 1 :])
    return f"line {at + 1} removed"


def repeat_line(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if not lines:
        return None
    at = random.randrange(len(lines))
    _write_lines(path, [*lines[: at + 1], *lines[at:]])
    return f"line {at + 1} repeated"


def swap_lines(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if len(set(lines)) < 2:
        return None
    one, other = random.sample(range(len(lines)), 2)
    if lines[one] == lines[other]:
        return None
    lines[one], lines[other] = lines[other], lines[one]
    _write_lines(path, lines)
    return f"lines {one + 1} and {other + 1} swapped"


def change_line(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if not lines:
        return None
    at = random.randrange(len(lines))
    changed, how = change_leaf(json.loads(lines[at]), random)
    lines[at] = json.dumps(changed)
    _write_lines(path, lines)
    return f"line {at + 1}: {how}"


LINES: tuple[Way, ...] = (remove_line, repeat_line, swap_lines, change_line, change_line)


# ------------------------------------------------------------------------------------------------------ histories


def _rewrite(path: Path, rows: list[dict[str, Any]], process: str | None = None) -> None:
    """The same file with other rows, as if it had been written so: end mark and all."""
    whose = rows[0]["process"] if rows else path.stem
    schema = SCHEMA.with_metadata({"gapless.process": process or whose})
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    messages = b"".join(bytes(batch_message(batch)) for batch in table.to_batches())
    path.write_bytes(bytes(schema.serialize()) + messages + END_OF_STREAM)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [{name: row[name] for name in SCHEMA.names} for row in read_history(path, with_totals=True).to_pylist()]


def remove_row(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if not rows:
        return None
    gone = rows.pop(random.randrange(len(rows)))
    _rewrite(path, rows)
    return f"a row {gone['f']}/{gone['type']} removed"


def repeat_row(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if not rows:
        return None
    at = random.randrange(len(rows))
    rows.insert(random.randrange(len(rows) + 1), rows[at])
    _rewrite(path, rows)
    return f"a row {rows[at]['f']}/{rows[at]['type']} repeated"


def swap_rows(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if len(rows) < 2:
        return None
    one, other = random.sample(range(len(rows)), 2)
    if rows[one] == rows[other]:
        return None
    rows[one], rows[other] = rows[other], rows[one]
    _rewrite(path, rows)
    return f"rows {one} and {other} swapped"


def change_field(path: Path, random: Random) -> str | None:
    rows = _rows(path)
    if not rows:
        return None
    at, name = random.randrange(len(rows)), random.choice(SCHEMA.names)
    value = rows[at][name]
    words = {"f": ["send", "poll", "note"], "type": ["ok", "fail", "info", "invoke"], "phase": ["load", "final"]}
    if name in words:
        changed = random.choice([word for word in words[name] if word != value])
    elif name == "error":
        changed = "_MSG_TIMED_OUT: changed" if value is None else None
    elif isinstance(value, str):
        changed = value + "x"
    else:
        changed = random.choice([value + 1, value + 1000, -1 if value != -1 else 0])
    rows[at] = {**rows[at], name: changed}
    _rewrite(path, rows, path.stem)
    return f"row {at} ({rows[at]['f']}/{rows[at]['type']}): {name} {value!r:.30} became {changed!r:.30}"


def remove_message(path: Path, random: Random) -> str | None:
    messages, closed = split_messages(memoryview(path.read_bytes()), str(path))
    if len(messages) < 2:
        return None
    del messages[random.randrange(1, len(messages))]
    path.write_bytes(b"".join(map(bytes, messages)) + (END_OF_STREAM if closed else b""))
    return "a message removed"


def lose_end(path: Path, _random: Random) -> str | None:
    data = path.read_bytes()
    if not data.endswith(END_OF_STREAM):
        return None
    path.write_bytes(data[: -len(END_OF_STREAM)])
    return "its end mark removed"


ROWS: tuple[Way, ...] = (
    remove_row, repeat_row, swap_rows, change_field, change_field, change_field, remove_message, lose_end,
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------- drawing

#: What can be tampered with, and how; the first entry that fits a drawn kind of file is used.
TARGETS: tuple[tuple[str, tuple[str, ...], tuple[Way, ...]], ...] = (
    ("run.json", ("run.json",), (change_json, change_json, change_json, change_json, *WHOLE)),
    ("history rows", ("history/*.arrow",), ROWS),
    ("histories", ("history/*.arrow",), WHOLE),
    ("faults", ("faults.jsonl",), (*LINES, *LINES, *WHOLE)),
    ("journals", ("nodes/*/control.jsonl", "leaders.jsonl"), (*LINES, *WHOLE)),
    ("series", ("loadgen/*.series.jsonl", "resources.jsonl"), (*LINES, *WHOLE)),
    ("json", ("loadgen/settings.json", "loadgen/*.status.json", "seal.json"), (change_json, *WHOLE)),
    ("other", ("schedule.yaml", "nodes/*/*.log", "proxy.log", "loadgen/*.log"), WHOLE),
    ("segments", ("nodes/*/data/*/*.log",), WHOLE),
    ("beside segments", ("nodes/*/data/*/*.index", "nodes/*/data/*/*.timeindex", "nodes/*/data/*/*.snapshot",
                         "nodes/*/data/*/leader-epoch-checkpoint", "nodes/*/data/*/partition.metadata",
                         "nodes/*/data/*checkpoint", "nodes/*/data/meta.properties"), WHOLE),
)  # fmt: skip


def tamper(run: Path, seed: int) -> Tampering:
    """Tamper with one thing of this copy; the same seed does the same to the same run."""
    random = Random(seed)
    while True:
        _, patterns, ways = random.choice(TARGETS)
        found = files(run, *patterns)
        if not found:
            continue
        path, way = random.choice(found), random.choice(ways)
        how = way(path, random)
        if how is not None:
            return Tampering(str(path.relative_to(run)), how)
