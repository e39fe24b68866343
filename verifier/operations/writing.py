"""Writes operations as EDN or as JSON lines, for ``verifier.operations.reading``. Owns the syntax of the output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

LineForm = Callable[[Mapping[str, Any]], str]


def json_line(operation: Mapping[str, Any]) -> str:
    """One operation as one line of JSON."""
    return json.dumps(operation, ensure_ascii=False, separators=(",", ":"))


def edn_line(operation: Mapping[str, Any]) -> str:
    """One operation as one line of EDN, as Jepsen prints it: fields, types and functions are keywords."""
    parts = []
    for name, value in operation.items():
        if name == "value":
            parts.append(f":value {_value(value)}")
        elif name in ("type", "f"):
            parts.append(f":{name} :{value}")
        elif name == "rebalance-log":
            events = " ".join(f"{{:keys {edn(each['keys'])}}}" for each in value)
            parts.append(f":rebalance-log [{events}]")
        else:
            parts.append(f":{name} {edn(value)}")
    return "{" + ", ".join(parts) + "}"


def _value(value: Any) -> str:
    if not isinstance(value, list) or not value or not isinstance(value[0], list):
        return edn(value)
    return "[" + " ".join(f"[:{mop[0]}{''.join(f' {edn(each)}' for each in mop[1:])}]" for mop in value) + "]"


def edn(value: Any) -> str:
    """Numbers, strings, None, booleans, lists and mappings as EDN. Raises ``TypeError`` for anything else."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        # JSON and EDN have the same escapes, and non-ASCII characters need none
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(edn, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{edn(key)} {edn(each)}" for key, each in value.items()) + "}"
    raise TypeError(f"{type(value).__name__} has no form in EDN here")


FORMS: Mapping[str, LineForm] = {"edn": edn_line, "jsonl": json_line}
