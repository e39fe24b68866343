"""What the beginning of a file says about its being a history of operations: EDN or JSON, as its name promises. Pure.

Owns the words of the refusal. Whatever is wrong with single operations is told by who reads the file.
"""

from __future__ import annotations

import json
import re

EDN = ".edn"
NOTHING = "nothing in it has a process"
_EDN_PROCESS = re.compile(r"[{,\s]:process[\s\"]")
_JSON_PROCESS = '"process"'


def complaint(head: str, suffix: str) -> str | None:
    """Why a file that begins so and is called ``*<suffix>`` is no history. None: it may be one, or it is empty."""
    text = head.lstrip()
    is_edn, is_json = _EDN_PROCESS.search(head) is not None, _JSON_PROCESS in head and text[:1] in ("{", "[")
    if not text or (is_edn if suffix == EDN else _has_operation(text)):
        return None
    if suffix == EDN:
        return "it looks like JSON: rename it to .jsonl" if is_json else NOTHING
    if is_edn and _JSON_PROCESS not in head:
        return "it looks like EDN: rename it to .edn"
    return _line_by_line(head) if is_json else NOTHING


def _has_operation(text: str) -> bool:
    """Whether this JSON has an operation that is where it belongs."""
    if text.startswith("["):
        # the elements of an array may be on any number of lines: whatever is damaged is told by who reads it
        return _JSON_PROCESS in text or text[1:].lstrip()[:1] == "]"
    return any(_is_operation(line) for line in text.splitlines())


def _is_operation(line: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    except RecursionError:
        # who reads the file says what is wrong with this line
        return _JSON_PROCESS in line
    return isinstance(value, dict) and "process" in value


def _line_by_line(head: str) -> str:
    """Why no line of it is an operation, although something is called a process."""
    begin = len(head) - len(head.lstrip())
    first = head.count("\n", 0, begin) + 1
    try:
        value, end = json.JSONDecoder().raw_decode(head, begin)
    except (ValueError, RecursionError):
        # a file of another kind may have a process somewhere; an operation has it where it begins
        return _not_whole(first) if _JSON_PROCESS in head[begin:].splitlines()[0] else NOTHING
    if not isinstance(value, dict) or "process" not in value:
        return NOTHING
    last = first + head.count("\n", begin, end)
    return _not_whole(first, "" if last == first else f": the object continues to line {last}")


def _not_whole(line: int, why: str = "") -> str:
    fix = "put each operation on its own line, or all of them in one array"
    return f"line {line} is not a complete JSON object{why} ({fix})"
