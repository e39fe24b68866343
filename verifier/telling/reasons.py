"""The reasons for which the settings allow what a check found, each without the event that excuses it. Pure.

``Example.allowed`` has both in one text, for programs; people are told a reason once and then its events.
"""

from __future__ import annotations

from verifier.verdict import CheckResult, Example


def reason_of(example: Example) -> str | None:
    """Why the settings allow it, whatever the event; None if they do not."""
    if example.allowed is None or example.found.event is None:
        return example.allowed
    return example.allowed.removesuffix(f"; {example.found.event}")


def by_reason(check: CheckResult) -> dict[str, list[Example]]:
    """The allowed examples of a check under their reasons, in the order in which they come."""
    found: dict[str, list[Example]] = {}
    for example in check.examples:
        reason = reason_of(example)
        if reason:
            found.setdefault(reason, []).append(example)
    return found
