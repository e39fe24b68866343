"""The checks of transactions as clients saw them: exact cases, and random histories beside the oracle."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.verifier.oracle import clients as oracle
from verifier import explain
from verifier.evidence.history import HistoryRow
from verifier.transactions.client_rows import ABORTED, COMMITTED, UNKNOWN, Overlaps, client_evidence, outcome
from verifier.transactions.model import Anomalous
from verifier.transactions.transaction_checks import CLIENT_CHECKS, summed_up

CASES = 3_000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 150
TOPIC = "t"

Row = dict[str, Any]


def row(process: str, f: Any, outcome: Any = "ok", **fields: Any) -> Row:
    """A row of a history, with its process."""
    made = HistoryRow(f, outcome, **fields)._asdict()
    made["last_sequence"] = max(made["last_sequence"], made["first_sequence"])
    if made["first_offset"] >= 0 and made["last_offset"] < 0:
        made["last_offset"] = made["first_offset"] + made["last_sequence"] - made["first_sequence"]
    return made | {"process": process}


def begin(op: int, at: int, process: str = "p") -> Row:
    return row(process, "begin", op=op, invoke_ns=at, complete_ns=at)


def end(op: int, f: str, kind: str, asked: int, done: int, process: str = "p") -> Row:
    return row(process, f, kind, op=op, invoke_ns=asked, complete_ns=done)


def sent(op: int, partition: int, sequence: int, offset: int, at: int, process: str = "p", kind: str = "ok") -> Row:
    where = {"first_offset": offset} if kind == "ok" else {}
    return row(
        process, "send", kind, topic=TOPIC, partition=partition, stream=partition, first_sequence=sequence, op=op,
        invoke_ns=at, complete_ns=at + 1, **where,
    )  # fmt: skip


def polled(partition: int, sequence: int, offset: int, at: int, process: str = "r", last: int = -1) -> Row:
    return row(
        process, "poll", topic=TOPIC, partition=partition, stream=partition, first_sequence=sequence,
        last_sequence=last, first_offset=offset, session=1, op=7, invoke_ns=at - 1, complete_ns=at,
    )  # fmt: skip


def isolated(process: str = "r") -> Row:
    return row(process, "isolation", session=1)


def taken(op: int, partition: int, offset: int, process: str = "p", kind: str = "ok") -> Row:
    return row(process, "offsets", kind, op=op, topic=TOPIC, partition=partition, first_offset=offset, invoke_ns=5)


def found_in(rows: list[Row]) -> list[Anomalous]:
    evidence = client_evidence(rows)
    return [anomaly for check in CLIENT_CHECKS for anomaly in check(evidence)]


def names(rows: list[Row]) -> dict[str, int]:
    return dict(Counter(each.check for each in found_in(rows)))


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ([], UNKNOWN),
        ([("commit", "ok")], COMMITTED),
        ([("commit", "info")], UNKNOWN),
        ([("commit", "fail")], ABORTED),
        ([("abort", "ok")], ABORTED),
        ([("abort", "info")], ABORTED),
        ([("abort", "fail")], ABORTED),
        ([("commit", "info"), ("abort", "ok")], UNKNOWN),
        ([("commit", "fail"), ("abort", "ok")], ABORTED),
        ([("commit", "info"), ("commit", "ok")], COMMITTED),
        ([("commit", "fail"), ("commit", "info")], UNKNOWN),
    ],
)
def test_an_outcome_is_certain_or_unknown(ends: list[tuple[str, str]], wanted: str) -> None:
    """Once a commit may have happened, nothing that follows makes it certain that it did not."""
    assert outcome(ends) == wanted
    assert outcome(reversed(ends)) == wanted


def history(*ends: Row, read_at: int = 50, isolation: bool = True) -> list[Row]:
    """A transaction of two values, and a reader of the second."""
    first = [isolated()] if isolation else []
    return [*first, begin(3, 1), sent(3, 0, 4, 10, 2), sent(3, 0, 5, 11, 2), *ends, polled(0, 5, 11, read_at)]


def test_what_was_aborted_is_not_read() -> None:
    """A committed reader is handed a value of an aborted transaction; not one that reads everything, or may read it."""
    aborted = end(3, "abort", "ok", 20, 30)
    (found,) = found_in(history(aborted))
    assert (found.check, found.topic, found.partition, found.offset) == ("G1a", TOPIC, 0, 11)
    (told,) = summed_up([found])
    assert explain.sentence(told) == "t-0: r read s0/5 at offset 11, of transaction 3 of p, which was not committed"
    assert names(history(end(3, "commit", "fail", 20, 30))) == {"G1a": 1}
    assert names(history(aborted, isolation=False)) == {}
    for legal in (
        [end(3, "commit", "ok", 20, 30)],
        [end(3, "commit", "info", 20, 30)],
        [end(3, "commit", "info", 20, 30), aborted],
        [],
    ):
        assert names(history(*legal)) == {}


def test_what_is_open_is_not_read() -> None:
    """The poll had ended before the first commit was asked for; at the same moment is legal, and so is later."""
    commit = end(3, "commit", "ok", 20, 30)
    (found,) = found_in(history(commit, read_at=19))
    assert (found.check, found.offset, found.detail["asked_ns"] - found.detail["read_ns"]) == (
        "precommitted-read",
        11,
        1,
    )
    (told,) = summed_up([found])
    assert explain.sentence(told).endswith("of transaction 3 of p, 0.0 ms before its commit was asked for")
    assert names(history(commit, read_at=20)) == {}
    assert names(history(commit, end(3, "commit", "ok", 40, 41), read_at=39)) == {}
    assert names(history(end(3, "commit", "info", 20, 30), read_at=19)) == {"precommitted-read": 1}
    assert names(history(commit, read_at=19, isolation=False)) == {}
    assert names(history(end(3, "abort", "ok", 20, 30), read_at=19)) == {"G1a": 1}


def test_members_of_a_group_read_only_what_is_committed() -> None:
    """Their sessions have no row that says it: all of them do."""
    joined = row("r", "member", session=1, error="g id-1")
    aborted, committed = (end(3, f, "ok", 20, 30) for f in ("abort", "commit"))
    assert names([joined, *history(aborted, isolation=False)]) == {"G1a": 1}
    assert names([joined, *history(committed, isolation=False, read_at=19)]) == {"precommitted-read": 1}
    assert names([joined, *history(committed, isolation=False)]) == {}
    assert names([joined | {"session": 2}, *history(aborted, isolation=False)]) == {}


def test_a_poll_of_many_values_is_told_apart() -> None:
    """Of values in one row, those of the aborted transaction are named, at their offset."""
    rows = [
        isolated(), sent(0, 0, 0, 0, 2), sent(1, 0, 1, 1, 2), sent(1, 0, 2, 2, 2), sent(-1, 0, 3, 3, 2),
        end(0, "commit", "ok", 3, 4), end(1, "abort", "ok", 3, 4), polled(0, 0, 0, 9, last=3),
    ]  # fmt: skip
    assert [(each.check, each.offset, each.detail["first_sequence"]) for each in found_in(rows)] == [
        ("G1a", 1, 1), ("G1a", 2, 2),
    ]  # fmt: skip


def circle(*, isolation: bool = True, last: str = "commit", taken_kind: str = "ok") -> list[Row]:
    """Two transactions of one process, each of which reads what the other sent."""
    first = [isolated("p")] if isolation else []
    return [
        *first, begin(0, 1), sent(0, 0, 0, 0, 2), begin(1, 1), sent(1, 1, 0, 0, 2), polled(0, 0, 0, 90, "p"),
        polled(1, 0, 0, 90, "p"), taken(0, 1, 0), taken(1, 0, 0, kind=taken_kind), end(0, "commit", "ok", 5, 6),
        end(1, last, "ok", 5, 6),
    ]  # fmt: skip


def test_transactions_that_read_from_each_other_are_shown() -> None:
    """The cycle step by step; not of readers of everything, of an aborted one, or of an input that was refused."""
    (found,) = found_in(circle())
    assert found.check == "G1c"
    (told,) = summed_up([found])
    assert explain.sentence(told) == (
        "t-0: a cycle of 2 of 2 connected transactions: transaction 1 of p read what transaction 0 of p wrote to t-0 "
        "at offset 0; transaction 0 of p read what transaction 1 of p wrote to t-1 at offset 0"
    )
    assert names(circle(isolation=False)) == {}
    assert names(circle(last="abort")) == {"G1a": 1}
    assert names(circle(taken_kind="fail")) == {}


def writes(second_begins: int, *, swapped: bool = True, last: str = "ok") -> list[Row]:
    """Two transactions write to two partitions; ``swapped``: in opposite orders."""
    offsets = (1, 0) if swapped else (0, 1)
    return [
        begin(0, 1), sent(0, 0, 0, 0, 2), sent(0, 1, 0, offsets[0], 2), end(0, "commit", "ok", 8, 9),
        begin(1, second_begins, "q"), sent(1, 0, 1, 1, second_begins, "q"),
        sent(1, 1, 1, offsets[1], second_begins, "q"), end(1, "commit", last, 40, 41, "q"),
    ]  # fmt: skip


def test_writes_in_a_circle_are_shown_if_time_forbids_them() -> None:
    """One transaction began after the other was committed; while both are open, any order is legal."""
    (found,) = found_in(writes(10))
    (told,) = summed_up([found])
    assert explain.sentence(told) == (
        "t-0: a cycle of 2 of 2 connected transactions: transaction 0 of p wrote right before what is in t-0 at offset "
        "1, of transaction 1 of q; transaction 1 of q wrote right before what is in t-1 at offset 1, of transaction 0 "
        "of p, which was committed before transaction 1 of q began"
    )
    assert names(writes(9)) == {}
    assert names(writes(10, swapped=False)) == {}
    assert names(writes(10, last="info")) == {}
    assert names([isolated(), *writes(10, last="info"), polled(1, 1, 0, 90)]) == {"G0": 1}


def test_overlapping_spans_are_found() -> None:
    """Each span that shares a number with the one that is asked for, with what they share; long ones, too."""
    spans = Overlaps([(0, 9, "a"), (3, 3, "b"), (5, 20, "c"), (30, 31, "d")])
    assert sorted(spans.of(3, 6)) == [(3, 3, "b"), (3, 6, "a"), (5, 6, "c")]
    assert list(spans.of(10, 10)) == [(10, 10, "c")]
    assert list(spans.of(21, 29)) == []
    assert list(Overlaps[str]([]).of(0, 5)) == []


def drawn(random: Random) -> list[Row]:
    """A few processes with transactions, readers and inputs, of any outcome, at any time."""
    rows = [isolated(process) for process in ("r", "p", "q") if random.random() < 0.8]
    rows = [each | {"f": random.choice(["isolation", "isolation", "member"])} for each in rows]
    times = {(process, op): random.randint(0, 60) for process in ("p", "q") for op in range(random.randint(1, 3))}
    rows += [begin(op, at, process) for (process, op), at in times.items()]
    stored: list[tuple[int, int]] = []
    for number in range(random.randint(2, 10)):
        (process, op), partition = random.choice([*times]), random.randint(0, 1)
        kind = random.choice(["ok", "ok", "ok", "ok", "info", "fail"])
        # in partition 1 the latest is first
        offset = number if partition == 0 else 20 - number
        rows.append(sent(op, partition, number, offset, times[process, op] + 1, process, kind))
        stored.append((partition, offset))
    for (process, op), at in times.items():
        for _ in range(random.choice([0, 1, 1, 1, 1, 2])):
            f, kind = (
                random.choice(["commit", "commit", "commit", "abort"]),
                random.choice(["ok", "ok", "info", "fail"]),
            )
            rows.append(end(op, f, kind, at + random.randint(2, 20), at + 20, process))
        for partition, offset in random.sample(stored, random.randint(0, 2)):
            rows.append(taken(op, partition, offset, process, random.choice(["ok", "ok", "ok", "fail"])))
    for process in ("r", "p", "q"):
        for partition, offset in random.sample(stored, len(stored) * 3 // 4):
            sequence = offset if partition == 0 else 20 - offset
            rows.append(polled(partition, sequence, offset, random.randint(2, 90), process))
    return rows


def test_the_checks_and_the_oracle_agree() -> None:
    """Anomalies of reads by place, cycles by their shortest lengths; all of them occur."""
    seen: Counter[str] = Counter()
    for seed in range(CASES):
        rows = drawn(Random(seed))
        told: Counter[Any] = Counter(
            (each.check, len(each.detail["steps"]))
            if "steps" in each.detail
            else (each.check, (each.partition, each.offset))
            for each in found_in(rows)
        )
        transactions, polls = oracle.read(rows)
        wanted: Counter[Any] = Counter((each.check, each.length) for each in oracle.circles(transactions, polls))
        wanted.update((each.check, (each.partition, each.offset)) for each in oracle.of_reads(transactions, polls))
        assert told == wanted, seed
        seen.update(key[0] for key in told)
    assert set(seen) == {"G1a", "precommitted-read", "G1c", "G0"}
