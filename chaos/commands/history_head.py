"""Checks by its beginning whether a file can be a history of operations, in the format of its name: EDN or JSON. Pure.

Owns the wording of the refusal. Does not report errors in single operations (the reader of the file does).
"""

from __future__ import annotations

import json
import re

EDN = ".edn"
NOTHING = "nothing in it has a process"
_EDN_PROCESS = re.compile(r"[{,\s]:process[\s\"]")
_JSON_PROCESS = '"process"'


def complaint(head: str, suffix: str) -> str | None:
    """Why a file ``*<suffix>`` with this beginning is not a history; None if it may be one, or if it is empty."""
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
    """Whether this JSON has an operation in the right place."""
    if text.startswith("["):
        # the elements of an array may have any number of lines; the reader of the file reports damage
        return _JSON_PROCESS in text or text[1:].lstrip()[:1] == "]"
    return any(_is_operation(line) for line in text.splitlines())


def _is_operation(line: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    except RecursionError:
        # the reader of the file reports what is wrong with this line
        return _JSON_PROCESS in line
    return isinstance(value, dict) and "process" in value


def _line_by_line(head: str) -> str:
    """Why no line is an operation, although the text mentions a process."""
    begin = len(head) - len(head.lstrip())
    first = head.count("\n", 0, begin) + 1
    try:
        value, end = json.JSONDecoder().raw_decode(head, begin)
    except (ValueError, RecursionError):
        # a file of another kind may mention a process anywhere; an operation has it in its first line
        return _not_whole(first) if _JSON_PROCESS in head[begin:].splitlines()[0] else NOTHING
    if not isinstance(value, dict) or "process" not in value:
        return NOTHING
    last = first + head.count("\n", begin, end)
    return _not_whole(first, "" if last == first else f": the object continues to line {last}")


def _not_whole(line: int, why: str = "") -> str:
    fix = "put each operation on its own line, or all of them in one array"
    return f"line {line} is not a complete JSON object{why} ({fix})"
