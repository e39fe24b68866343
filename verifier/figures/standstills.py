"""How long last stable offsets stood still, as the conductor saw it (``stable_offsets.jsonl``).

Owns this figure. The conductor looks about once a second, so it is no more precise than that. Judges nothing: the check
``hanging-transaction`` finds transactions that no one will end, in the logs.
"""

from __future__ import annotations

from typing import Any

from verifier.evidence.run_directory import RunDirectory, read_json_lines
from verifier.evidence.units import seconds_of_ns


def standstills(directory: RunDirectory) -> dict[str, Any] | None:
    """The number of looks, the number of standstills of a second or more, and the longest one in s.

    None if the conductor never looked, or if its file cannot be read.
    """
    try:
        lines = list(read_json_lines(directory.stable_offsets_jsonl))
        looks = sum(int(line["looks"]) for line in lines if "looks" in line)
        found = [line for line in lines if "looks" not in line]
        longest = max(found, key=lambda line: int(line["until_ns"]) - int(line["since_ns"]), default=None)
        if not looks:
            return None
        told = {"looks": looks, "standstills": len(found), "longest_s": 0.0}
        if longest is not None:
            told["longest_s"] = round(seconds_of_ns(longest["until_ns"] - longest["since_ns"]), 1)
            told |= {name: longest[name] for name in ("topic", "partition", "offset")}
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return told


def standstill_text(found: dict[str, Any]) -> str:
    """The figure as one line."""
    if "topic" not in found:
        return f"less than a second ({found['looks']:,} looks)"
    return f"{found['longest_s']:,.1f} s, of {found['topic']}-{found['partition']} at offset {found['offset']:,}"
