"""How many transactions were committed, aborted, or unknown to their clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.verifier.planted import planted_story
from verifier.evidence.declared import DeclaredProcess
from verifier.transactions.figures import EndRow, figures_of, figures_text, transaction_figures


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


def test_a_part_of_the_transactions_is_no_count(tmp_path: Path) -> None:
    """Where a history is missing or damaged, no number is told, as of what was acknowledged; of a whole run it is."""
    story = planted_story("what clients see of transactions")
    directory, run = story.write(tmp_path), story.model()
    whole = transaction_figures(directory, run)
    assert whole is not None and sum(whole.values()) == 6
    (history,) = directory.history_dir.glob("producer-1*.arrow")
    other = DeclaredProcess("producer-2", "producers", "confluent", 3, 1)
    both = replace(run, evidence=replace(run.evidence, processes=[*run.evidence.processes, other]))
    assert transaction_figures(directory, both) is None
    (directory.history_dir / "producer-2.arrow").write_bytes(history.read_bytes()[:-200].replace(b"begin", b"\xff" * 5))
    assert transaction_figures(directory, run) is None
