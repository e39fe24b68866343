"""How many transactions were committed, aborted, or unknown to their clients."""

from __future__ import annotations

from verifier.transactions.figures import EndRow, figures_of, figures_text


def begun(op: int, *ends: tuple[str, str], process: str = "producers-1") -> list[EndRow]:
    """A transaction, and what ends it."""
    return [EndRow(process, op, f, kind) for f, kind in (("begin", "ok"), *ends)]


def test_each_transaction_is_counted_once_by_what_its_client_was_told() -> None:
    """However often its end was tried; numbers are those of a process, and -1 is no transaction."""
    rows = [
        *begun(0, ("commit", "info"), ("commit", "ok")),
        *begun(1, ("abort", "ok")),
        *begun(1, ("commit", "ok"), process="producers-2"),
        *begun(2, ("commit", "info"), ("abort", "ok")),
        *begun(3),
        EndRow("producers-1", -1, "abort", "info"),
    ]
    found = figures_of(rows)
    assert found == {"committed": 2, "aborted": 1, "unknown": 2}
    assert figures_text(found) == "2 committed, 1 aborted, 2 with unknown outcome"


def test_a_run_without_transactions_has_no_count() -> None:
    """Without transactions there is no count, not even zero."""
    assert figures_of([]) is None
