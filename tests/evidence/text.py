"""Ways to tamper with lines of text, and with fields of JSON: one document a file, or one a line.

Owns no knowledge of what the fields mean. A container may become a number, too: nothing says that damage keeps types.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.evidence.whole import Way

#: Changes one thing in a document, in place, and says what; None if there is nothing of the kind.
Change = Callable[[Any, Random], str | None]

#: How often a whole object or list is what is tampered with.
CONTAINERS = 0.1


# ------------------------------------------------------------------------------------------------- lines


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def remove_line(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if not lines:
        return None
    at = random.randrange(len(lines))
    path.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
    return f"line {at + 1} removed"


def repeat_line(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if not lines:
        return None
    at = random.randrange(len(lines))
    path.write_bytes(b"".join([*lines[: at + 1], *lines[at:]]))
    return f"line {at + 1} repeated"


def alter_line(path: Path, random: Random) -> str | None:
    """Another character in place of one."""
    lines = _lines(path)
    full = [at for at, line in enumerate(lines) if line.strip()]
    if not full:
        return None
    at = random.choice(full)
    line = bytearray(lines[at])
    column = random.randrange(len(line.rstrip(b"\r\n")))
    line[column] = random.choice([each for each in b"0179axZ-_ {" if each != line[column]])
    lines[at] = bytes(line)
    path.write_bytes(b"".join(lines))
    return f"line {at + 1}: character {column + 1} became {chr(line[column])!r}"


def swap_lines(path: Path, random: Random) -> str | None:
    lines = _lines(path)
    if len(set(lines)) < 2:
        return None
    one, other = random.sample(range(len(lines)), 2)
    if lines[one] == lines[other]:
        return None
    lines[one], lines[other] = lines[other], lines[one]
    path.write_bytes(b"".join(lines))
    return f"lines {one + 1} and {other + 1} swapped"


# ------------------------------------------------------------------------------------------------- fields


def _spot(document: Any, random: Random) -> tuple[Any, Any, str] | None:
    """A place in a document: what holds it, its key or number there, and its name."""
    spot, value, name = None, document, ""
    while isinstance(value, dict | list) and value:
        if spot is not None and random.random() < CONTAINERS:
            break
        key = random.choice(sorted(value)) if isinstance(value, dict) else random.randrange(len(value))
        name += f".{key}" if isinstance(value, dict) else f"[{key}]"
        spot, value = (value, key, name.lstrip(".")), value[key]
    return spot


def remove_field(document: Any, random: Random) -> str | None:
    spot = _spot(document, random)
    if spot is None:
        return None
    holder, key, name = spot
    del holder[key]
    return f"{name} removed"


def repeat_field(document: Any, random: Random) -> str | None:
    spot = _spot(document, random)
    if spot is None:
        return None
    holder, key, name = spot
    if isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        holder[f"{key} again"] = copy.deepcopy(holder[key])
    return f"{name} repeated"


def alter_field(document: Any, random: Random) -> str | None:
    spot = _spot(document, random)
    if spot is None:
        return None
    holder, key, name = spot
    before = holder[key]
    holder[key] = _another(before, random)
    return f"{name}: {before!r:.30} became {holder[key]!r:.30}"


def swap_fields(document: Any, random: Random) -> str | None:
    """Two values that stand side by side exchanged."""
    spot = _spot(document, random)
    if spot is None:
        return None
    holder, key, name = spot
    keys = sorted(holder) if isinstance(holder, dict) else list(range(len(holder)))
    others = [each for each in keys if holder[each] != holder[key]]
    if not others:
        return None
    other = random.choice(others)
    holder[key], holder[other] = holder[other], holder[key]
    return f"{name} and {other} swapped"


def _another(value: Any, random: Random) -> Any:
    choices: list[Any]
    if isinstance(value, bool):
        choices = [not value]
    elif isinstance(value, int | float):
        choices = [value + 1, value - 1, -value - 1, value * 2 + 1, 0 if value else 7]
    elif isinstance(value, str):
        choices = [value + "x", value[:-1] + "y", "", "none"]
    else:
        choices = [1]
    if random.random() < CONTAINERS:
        choices = [None, 7, "x", [], {}, [value], {"x": value}]
    # True is 1 to Python, and not to a reader of JSON
    told = json.dumps(value)
    different = [each for each in choices if json.dumps(each) != told]
    return random.choice(different or ["another"])


def in_document(change: Change) -> Way:
    """This change, of a file that is one document."""

    def way(path: Path, random: Random) -> str | None:
        document = json.loads(path.read_text(encoding="utf-8"))
        how = change(document, random)
        if how is not None:
            path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return how

    return way


def in_line(change: Change) -> Way:
    """This change, of one of the documents of a file that has one a line."""

    def way(path: Path, random: Random) -> str | None:
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines:
            return None
        at = random.randrange(len(lines))
        document = json.loads(lines[at])
        how = change(document, random)
        if how is None:
            return None
        lines[at] = json.dumps(document)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return f"line {at + 1}: {how}"

    return way
