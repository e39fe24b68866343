"""Pairs the totals that a process counted live with the counts of its history. Pure.

Owns which total in a series corresponds to which rows; judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from verifier.accounts.account import HistoryAccount
from verifier.evidence.series import SeriesPoint

#: For each kind of value: its name in messages, the function and outcome of its rows, and the total in a series.
_KINDS = (
    ("acknowledged", "send", "ok", "total_acked"),
    ("failed", "send", "fail", "total_failed"),
    ("of unknown outcome", "send", "info", "total_unknown"),
    ("read", "poll", "ok", "total_read"),
)


class CountedValues(NamedTuple):
    """One kind of value: how many the history has (``found``), and how many the process counted."""

    word: str
    found: int
    counted: int


def counted(account: HistoryAccount, point: SeriesPoint) -> Iterator[CountedValues]:
    """Both counts for each kind of value."""
    for word, function, outcome, total in _KINDS:
        yield CountedValues(word, account.values(function, outcome), getattr(point, total))
