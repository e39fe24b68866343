"""To which session or transaction the rows of one history belong, and which of them belong to none. Judges nothing.

Owns the sets behind an account's ``assigned`` to ``sent_outside``. A session is one number per assignment; transactions
are kept as ranges, so that memory does not grow with a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verifier.accounts.columns import column
from verifier.ranges import Coverage, Numbers, Ranges, ranges, without

#: Rows of a member that say what it was handed: each is of a session, whatever became of the assignment since.
_OF_SESSIONS = ("resume", "poll")
#: Rows that may have no session, because the assignment is over by then.
_AFTER_SESSIONS = ("revoke", "offset-commit", "offsets")
_ENDS = ("commit", "abort")


class Told(TypedDict):
    """The fields of an account that are filled here."""

    assigned: frozenset[int]
    isolated: frozenset[int]
    memberless: frozenset[int]
    unended: tuple[tuple[int, int], ...]
    unbegun: tuple[tuple[int, int], ...]
    sent_outside: int


class Belonging:
    """The sessions and transactions of all rows so far."""

    def __init__(self) -> None:
        self._sessions: dict[str, set[int]] = {f: set() for f in ("assign", "isolation", "member")}
        self._of_members: set[int] = set()
        self._begun, self._ended, self._sent = Coverage(), Coverage(), Coverage()
        self._sent_outside = 0

    def __repr__(self) -> str:
        return f"Belonging({len(self._sessions['member'])} sessions of members)"

    def add(self, rows: pa.Table) -> None:
        """Add rows that are not totals."""
        for f, sessions in self._sessions.items():
            sessions.update(_numbers(rows, (f,), "session").tolist())
        after = _numbers(rows, _AFTER_SESSIONS, "session")
        self._of_members.update(_numbers(rows, _OF_SESSIONS, "session").tolist(), after[after >= 0].tolist())
        for functions, coverage in ((("begin",), self._begun), (_ENDS, self._ended), (("send",), self._sent)):
            numbers = _numbers(rows, functions, "op")
            inside = numbers[numbers >= 0]
            coverage.add(ranges(np.zeros_like(inside), inside, inside))
        self._sent_outside += int(np.count_nonzero(column(_rows(rows, ("send",)), "op") < 0))

    def told(self) -> Told:
        """The fields of an account, by their names."""
        return {
            "assigned": frozenset(self._sessions["assign"]),
            "isolated": frozenset(self._sessions["isolation"]),
            "memberless": frozenset(self._of_members - self._sessions["member"]),
            "unended": _transactions(without(self._begun.once, self._ended.once)),
            "unbegun": _transactions(without(self._sent.once, self._begun.once)),
            "sent_outside": self._sent_outside,
        }


def _rows(rows: pa.Table, functions: Sequence[str]) -> pa.Table:
    """Those of these functions."""
    return rows.filter(pc.is_in(rows["f"], value_set=pa.array(functions)))


def _numbers(rows: pa.Table, functions: Sequence[str], name: str) -> Numbers:
    """Each value of a column in rows of these functions, once."""
    return np.unique(column(_rows(rows, functions), name))


def _transactions(found: Ranges) -> tuple[tuple[int, int], ...]:
    """Their first and last numbers."""
    return tuple((first, last) for _, first, last in found.rows())
