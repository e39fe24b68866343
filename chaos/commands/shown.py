"""What is shown under the RESULT lines besides the reasons: an example, and what was planted. Owns the words.

Reads the verdict and the notes of planted defects (``nodes/<broker>/defects.jsonl``); judges nothing by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from verifier.evidence.run_directory import RunDirectory, read_json_lines

FIRINGS_FILE = "defects.jsonl"


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
    """How often each planted defect took effect, as the brokers noted it themselves."""
    firings: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for broker in directory.broker_ids():
        try:
            for line in read_json_lines(directory.node(broker) / FIRINGS_FILE):
                firings[line["defect"]] += 1
                records[line["defect"]] += line["count"]
        except (OSError, ValueError, KeyError, TypeError):
            yield f"planted: nodes/{broker}/{FIRINGS_FILE} cannot be read"
    for name, times in firings.items():
        yield (
            f"planted: {name} took effect {times:,} time{'s' * (times > 1)}, on {records[name]:,} records, "
            f"as the brokers noted (nodes/*/{FIRINGS_FILE})"
        )
