"""Suspicions are computed on 64 bits: of evidence whose numbers might not fit, nothing is left out."""

from __future__ import annotations

from dataclasses import fields

import pyarrow as pa
import pytest

from verifier import run_checks
from verifier.findings import CHECKED
from verifier.suspects.rows import MOST_RELIABLE, ExaminedRows, Rows

TABLES = [field.name for field in fields(ExaminedRows) if field.name != "contradictable"]


def examined(**numbers: list[int | None]) -> ExaminedRows:
    """Tables of one column, with these numbers in some of them."""
    tables = {
        name: Rows(pa.table({"topic": pa.array(["t"] * len(column)), "base_offset": pa.array(column, pa.int64())}))
        for name in TABLES
        for column in [numbers.get(name, [0, None, -1])]
    }
    return ExaminedRows(**tables, contradictable=frozenset())


@pytest.mark.parametrize("name", TABLES)
def test_a_number_that_may_wrap_is_noticed_in_every_table(name: str) -> None:
    """Whoever writes the evidence may write any number into it."""
    assert examined(**{name: [MOST_RELIABLE - 1, None, 1 - MOST_RELIABLE]}).is_reliable
    assert examined(**{name: []}).is_reliable
    assert not examined(**{name: [0, MOST_RELIABLE]}).is_reliable
    assert not examined(**{name: [-MOST_RELIABLE, 0]}).is_reliable


def test_then_every_check_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none if all numbers are sound and nothing is suspect."""
    for numbers, asked in (([1 << 62], CHECKED), ([7], ())):
        rows = examined(batches=numbers)
        monkeypatch.setattr(run_checks, "examine", lambda *_, rows=rows: rows)
        monkeypatch.setattr(run_checks, "suspects", lambda _: dict.fromkeys(CHECKED, frozenset()))
        monkeypatch.setattr(run_checks, "replica_rows", lambda _: None)
        monkeypatch.setattr(run_checks, "partition_rows", lambda *_: None)
        monkeypatch.setattr(run_checks, "is_tiny", lambda _: True)
        assert tuple(run_checks._to_ask(object(), object(), [], [])) == tuple(asked)  # type: ignore[arg-type]
