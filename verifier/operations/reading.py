"""Reads a file into an ``OperationHistory``. Owns which lines become operations.

Does not own the model (``verifier.operations.model``) or EDN's syntax (``verifier.operations.edn``). The file's name
decides between EDN and JSON. An EDN file has one operation per line, operations over several lines, or one vector of
operations. A JSON file has one object per line, or one array of objects. Files are read line by line, except for a JSON
array. Several processes read a large file (``verifier.operations.parts``). A damaged file raises ``OperationsError``
with file, line and problem; nothing is skipped silently.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verifier.operations.edn import EdnError, EdnReader, fast_forms, plain_map
from verifier.operations.model import HistoryBuilder, OperationHistory, OperationsError
from verifier.operations.parts import Part, Window, read_in_parts

EDN = ".edn"
JSON = (".jsonl", ".json")
#: The history's file in a directory of a Jepsen store.
STORE_FILE = "history.edn"
BATCH = 2_000
PART_BYTES = 1 << 20
_TOO_LONG = "a number has more digits than are read"


def read_operations(path: Path, processes: int | None = None) -> OperationHistory:
    """The history in a file. Raises ``OSError``, and ``OperationsError`` if the file is not a history.

    ``processes`` is the number of processes for a file with one operation per line; None decides by its size.
    """
    _check_written(path)
    if _is_by_line(path) and (whole := read_in_parts(path, _read_part, processes)) is not None:
        return whole
    builder = HistoryBuilder(str(path), json_keys=path.suffix != EDN)
    try:
        with path.open(encoding="utf-8") as file, _no_collection():
            if path.suffix == EDN:
                _read_edn(file, builder)
            elif (first := _first_character(file)) == "[":
                builder.add_all(_elements(file.read(), builder.name))
            elif first:
                _read_json_lines(file, builder)
    except RecursionError as error:
        raise OperationsError(f"{path}: its values are nested too deeply") from error
    except UnicodeDecodeError as error:
        raise OperationsError(f"{path}: this is not UTF-8 text: {error.reason} at byte {error.start}") from error
    return builder.finish()


def _check_written(path: Path) -> None:
    """Raises ``OperationsError`` if the file has a hole, which would read as one line of any length; or ``OSError``."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        hole = os.lseek(file.fileno(), 0, os.SEEK_HOLE) if size else 0
    if hole < size:
        raise OperationsError(f"{path}: nothing was written from byte {hole:,} on, and it has {size:,} bytes")


def _is_by_line(path: Path) -> bool:
    """Whether the first line that is not blank is a whole operation."""
    with path.open(encoding="utf-8", errors="replace") as file:
        line = next((line for line in file if line.strip()), "")
    return plain_map(line) is not None


def _read_part(path: Path, begin: int, end: int) -> Part:
    """The operations in the bytes from ``begin`` to ``end``. Raises OperationsError, UnicodeDecodeError or OSError."""
    builder = HistoryBuilder(str(path), json_keys=path.suffix != EDN)
    with io.TextIOWrapper(io.BufferedReader(Window(path, begin, end), PART_BYTES), "utf-8") as file, _no_collection():
        lines = (_read_edn if path.suffix == EDN else _read_json_lines)(file, builder)
    return Part(builder.finish(), lines)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Turns the cyclic garbage collector off: it would take a third of the time, and there are no cycles to collect."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read_edn(lines: Any, builder: HistoryBuilder) -> int:
    """Adds the operations in these lines of EDN. Returns the number of lines. Raises ``OperationsError``."""
    reader = EdnReader(unwrap=True)
    waiting: list[tuple[int, str]] = []

    def flush() -> None:
        if waiting:
            _add_maps(waiting, builder)
            waiting.clear()

    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            plain = plain_map(line) if reader.is_between_forms else None
            if plain is not None:
                waiting.append((number, plain))
                if len(waiting) >= BATCH:
                    flush()
                continue
            flush()
            builder.add_all(reader.feed(line, number))
        flush()
        reader.end()
        return number
    except EdnError as error:
        raise OperationsError(f"{builder.name}:{error.line}: {error}") from error


def _add_maps(waiting: list[tuple[int, str]], builder: HistoryBuilder) -> None:
    """Adds operations from (line number, text of a map): the fast way if possible. Raises ``EdnError``."""
    forms = fast_forms([text for _, text in waiting])
    if forms is not None:
        builder.add_all(zip([number for number, _ in waiting], forms, strict=True))
        return
    for number, text in waiting:
        one = fast_forms([text])
        if one is not None:
            builder.add_all([(number, one[0])])
            continue
        reader = EdnReader()
        builder.add_all(reader.feed(text + "\n", number))
        reader.end()


def _first_character(file: Any) -> str:
    """The first character that is not white space; empty if there is none. Then rewinds the file."""
    for line in file:
        if line.strip():
            file.seek(0)
            return str(line.strip()[0])
    return ""


def _read_json_lines(file: Any, builder: HistoryBuilder) -> int:
    """Adds the operations in a file with one JSON object per line. Returns the number of lines."""
    count = 0

    def numbered() -> Iterator[tuple[int, str]]:
        nonlocal count
        for line in file:
            count += 1
            if not line.isspace():
                yield count, line

    for batch in _chunks(numbered(), BATCH):
        try:
            values = json.loads(f"[{','.join([line for _, line in batch])}]")
        except (ValueError, RecursionError):
            values = None
        if values is None or len(values) != len(batch):
            values = [_json(line, number, builder.name) for number, line in batch]
        builder.add_all(zip([number for number, _ in batch], values, strict=True))
    return count


def _chunks(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    """The items in lists of at most ``size``."""
    waiting: list[tuple[int, Any]] = []
    for item in items:
        waiting.append(item)
        if len(waiting) == size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _json(line: str, number: int, name: str) -> Any:
    try:
        return json.loads(line)
    except RecursionError as error:
        raise OperationsError(f"{name}:{number}: its values are nested too deeply") from error
    except json.JSONDecodeError as error:
        why = f"column {error.colno}: {error.msg}"
        raise OperationsError(f"{name}:{number}: this line is not a complete JSON object: {why}") from error
    except ValueError as error:  # the JSON is well-formed, but a number is too long
        raise OperationsError(f"{name}:{number}: {_TOO_LONG}") from error


def _elements(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """The elements of a JSON array, each with the line on which it begins. Raises ``OperationsError``."""
    decoder = json.JSONDecoder()
    at, line, counted = text.index("[") + 1, 1, 0
    spaces = " \t\r\n"
    separated = True
    while True:
        while at < len(text) and text[at] in spaces:
            at += 1
        line, counted = line + text.count("\n", counted, at), at
        if at >= len(text):
            raise OperationsError(f"{name}:{line}: the file ends within its array")
        if text[at] == "]":
            break
        if text[at] == "," and not separated:
            at, separated = at + 1, True
            continue
        if not separated:
            raise OperationsError(f"{name}:{line}: expected , or ]")
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise OperationsError(f"{name}:{line}: this is not JSON: {error}") from error
        except ValueError as error:
            raise OperationsError(f"{name}:{line}: {_TOO_LONG}") from error
        separated = False
        yield line, value
    if text[at + 1 :].strip():
        raise OperationsError(f"{name}:{line}: something follows the array")
