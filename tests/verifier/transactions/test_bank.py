"""``bank-total``: exact cases. A transfer has both of its sides, or neither, for whoever reads what is committed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.settings import run_model
from tests.verifier.transactions.test_clients import Row, isolated, polled, row
from verifier import explain
from verifier.checks.bank_total import Bank, bank_total
from verifier.evidence.run_model import FinalPartition
from verifier.evidence.sequenced_value import SENTINEL_STREAM
from verifier.evidence.transfers import MOST, amount, other_side, transfer_key
from verifier.transactions.client_rows import client_evidence
from verifier.transactions.model import Anomalous
from verifier.transactions.transaction_checks import bank_of, summed_up

#: Streams 0 and 1 are two accounts, each in the partition of its number; the sentinels stand at offset 9.
BANK = Bank(7, {("t", 0): 9, ("t", 1): 9})
ENDS = [
    row(
        "r", "poll", topic="t", partition=partition, stream=SENTINEL_STREAM + partition, first_sequence=0,
        first_offset=9, session=1, op=8, invoke_ns=50, complete_ns=51,
    )
    for partition in (0, 1)
]  # fmt: skip


def found(*rows: Row) -> list[Anomalous]:
    return list(bank_total(client_evidence([isolated(), *rows]), BANK))


def test_both_sides_of_a_transfer_have_the_same_amount() -> None:
    """Never nothing, at most ``MOST`` in either direction, drawn by the run, the account and the number."""
    drawn = [amount(7, 0, number) for number in range(1000)]
    assert drawn == [-amount(7, 1, number) for number in range(1000)]
    assert 0 not in drawn and {min(drawn), max(drawn)} == {-MOST, MOST}
    assert drawn != [amount(8, 0, number) for number in range(1000)] != [amount(7, 2, number) for number in range(1000)]
    assert (other_side(4), other_side(5)) == (5, 4)
    assert transfer_key(7, 1, 3) == b"account 1: %+d" % amount(7, 1, 3)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [polled(0, 0, 0, 10), polled(1, 0, 4, 20)],
        [polled(0, 0, 0, 10, last=3), polled(1, 0, 4, 20, last=1), polled(1, 2, 7, 20, last=3)],
        # handed over twice from the same place: the reader repeated it, the accounts have it once
        [polled(0, 0, 0, 10), polled(0, 0, 0, 11), polled(1, 0, 4, 20)],
    ],
)
def test_whole_transfers_are_legal(rows: list[Row]) -> None:
    """Both sides or neither, in whatever spans and order they were handed over."""
    assert found(*rows, *ENDS) == []


def test_a_transfer_with_one_side_changes_the_total() -> None:
    """One anomaly for each, where the side that came is; both say by how much all accounts are off."""
    first, second = found(polled(0, 0, 0, 10, last=2), polled(1, 1, 5, 20), *ENDS)
    assert (first.check, first.topic, first.partition, first.offset) == ("bank-total", "t", 0, 0)
    assert second.offset == 2
    off = amount(7, 0, 0) + amount(7, 0, 2)
    assert dict(first.detail) == {
        "reader": "r", "stream": 0, "sequence": 0, "lacks": 1, "amount": amount(7, 0, 0), "off": off,
    }  # fmt: skip
    assert second.detail["off"] == off
    (one,) = summed_up([first, second])
    assert one.count == 2
    assert explain.sentence(one) == (
        f"t-0: r read s0/0 ({amount(7, 0, 0):+d}) at offset 0 and not s1/0 as often; by what it read, the accounts are "
        f"off by {off:+d}"
    )


def test_a_side_that_is_in_the_log_twice_counts_twice() -> None:
    """At two offsets: the account has it twice, the other one once."""
    (one,) = found(polled(0, 0, 0, 10), polled(0, 0, 5, 11), polled(1, 0, 4, 20), *ENDS)
    assert (one.partition, one.offset) == (0, 0)


@pytest.mark.parametrize("ends", [[], ENDS[:1]])
def test_who_did_not_come_to_the_end_is_not_judged(ends: list[Row]) -> None:
    """The other side may still come: the end of the log is the snapshot."""
    assert found(polled(0, 0, 0, 10), *ends) == []


def test_who_reads_everything_is_not_judged() -> None:
    """It is handed what is aborted, of which one side may never have been stored."""
    evidence = client_evidence([polled(0, 0, 0, 10), *ENDS])
    assert list(bank_total(evidence, BANK)) == []


def test_who_shares_a_group_is_not_judged() -> None:
    """It is handed a part, and others the rest, at least once."""
    rows = [row("r", "member", session=1, error="g id-1"), polled(0, 0, 0, 10), *ENDS]
    assert list(bank_total(client_evidence(rows), BANK)) == []


@pytest.mark.parametrize(
    ("kind", "sentinels", "is_bank"),
    [
        ("bank", (9, 9), True),
        ("bank", (9, None), False),
        ("bank", (), False),
        ("transactions", (9, 9), False),
        (None, (9, 9), False),
    ],
)
def test_a_run_is_a_bank_by_its_workload(kind: str | None, sentinels: tuple[int | None, ...], is_bank: bool) -> None:
    """By what ``run.json`` says, if every partition has a sentinel; without a kind there it is no bank."""
    experiment: dict[str, Any] = {"resolved": {"workload": {} if kind is None else {"kind": kind}}}
    final = [FinalPartition("t", number, 1, 1, 10, 0, {1: 10}, offset, "ok") for number, offset in enumerate(sentinels)]
    bank = bank_of(run_model(experiment=experiment, final=final, run_id=7))
    assert bank == (BANK if is_bank else None)
