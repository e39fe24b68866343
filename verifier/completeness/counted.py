"""What a process had counted, beside the same in its history. Owns which total is which kind of row. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from verifier.accounts.account import HistoryAccount
from verifier.evidence.series import SeriesPoint

#: The word for it, a row's function and outcome, and the total of a series.
_KINDS = (
    ("acknowledged", "send", "ok", "total_acked"),
    ("failed", "send", "fail", "total_failed"),
    ("of unknown outcome", "send", "info", "total_unknown"),
    ("read", "poll", "ok", "total_read"),
)


class CountedValues(NamedTuple):
    """Values of one kind: how many the history has, and how many the process had counted."""

    word: str
    found: int
    counted: int


def counted(account: HistoryAccount, point: SeriesPoint) -> Iterator[CountedValues]:
    """One for each kind."""
    for word, function, outcome, total in _KINDS:
        yield CountedValues(word, account.values(function, outcome), getattr(point, total))
