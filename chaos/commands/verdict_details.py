"""The details below the RESULT lines: an example of each anomaly, and the planted defects. Owns their wording.

Reads the verdict and the notes of planted defects (``nodes/<broker>/defects.jsonl``); judges nothing by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.firings import FIRINGS_FILE, fired
from verifier.evidence.how_many import how_many
from verifier.evidence.run_directory import RunDirectory


def examples(checks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The first example of each anomaly that is not allowed and that no other one explains."""
    forbidden = {name for name, each in checks.items() if each["count"] > each["allowed_count"]}
    for name in checks:
        each = checks[name]
        if name not in forbidden or each["explained_by"] in forbidden:
            continue
        text = next((example["text"] for example in each["examples"] if example["allowed"] is None), None)
        if text is not None:
            yield f"for example: {text}"


def planted(directory: RunDirectory) -> Iterator[str]:
    """How often each planted defect took effect, as the brokers noted it."""
    noted = fired(directory)
    yield from (f"planted: nodes/{broker}/{FIRINGS_FILE} cannot be read" for broker in noted.unreadable)
    for name, times in noted.times.items():
        on = f" on {how_many(noted.records[name], 'record')}," if noted.records[name] else ""
        yield (
            f"planted: {name} took effect {how_many(times, 'time')},{on} as the brokers noted (nodes/*/{FIRINGS_FILE})"
        )
