"""Joins complaints with the same reason into one line: ``t-0, t-1: its final state is unknown``. Owns no rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def together(complaints: Iterable[tuple[str, str]]) -> Iterator[str]:
    """``a, b: reason`` for complaints (name, reason) that share their reason, in the order of the reasons."""
    whose: dict[str, list[str]] = {}
    for name, reason in complaints:
        whose.setdefault(reason, []).append(name)
    for reason, names in whose.items():
        yield f"{', '.join(names)}: {reason}"
