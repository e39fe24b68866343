"""What readers were told of ends: exact cases beside the planted ones, and random histories beside the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.support.settings import run_model
from tests.verifier.oracle.timing import wrong_ends
from tests.verifier.oracle.transaction_logs import stable_offsets
from verifier import explain
from verifier.checks.wrong_end_offset import wrong_end_offset
from verifier.evidence.history import HistoryRow, HistoryWriter, read_history
from verifier.evidence.run_directory import RunDirectory
from verifier.files.transactions import Ended, Opened
from verifier.transactions.client_rows import client_evidence
from verifier.transactions.ends import StableRegions, ends_of
from verifier.transactions.logs import LogTransactions
from verifier.transactions.transaction_checks import summed_up, transactional

TOPIC = "t"


class StoppedClock:
    def monotonic_ns(self) -> int:
        return 0


def write(histories: Path, process: str, rows: list[HistoryRow]) -> None:
    writer = HistoryWriter(histories / f"{process}.arrow", process, StoppedClock())
    for row in rows:
        writer.append(row)
    writer.close()


def told(offset: int, at: int, partition: int = 0, session: int = 1) -> HistoryRow:
    where = {"first_offset": offset, "last_offset": offset}
    return HistoryRow("end-offset", "ok", TOPIC, partition, session=session, invoke_ns=at, complete_ns=at, **where)


def sent(offset: int, at: int, partition: int = 0, op: int = -1, count: int = 1) -> HistoryRow:
    last = count - 1
    return HistoryRow(
        "send", "ok", TOPIC, partition, 1, offset, offset + last, offset, offset + last, at, at + 1, op=op
    )


def drawn(random: Random) -> tuple[list[HistoryRow], list[HistoryRow]]:
    """A producer's rows and a reader's, in three partitions, many of them impossible."""
    producer = [
        sent(random.randrange(40), random.randrange(60), random.randrange(3), random.randrange(-1, 5), 1 + i % 3)
        for i in range(random.randrange(25))
    ]
    for op in range(5):
        producer.append(HistoryRow("begin", "ok", invoke_ns=0, complete_ns=0, op=op))
        f, outcome = random.choice((("commit", "ok"), ("commit", "info"), ("abort", "ok"), ("commit", "ok")))
        producer.append(HistoryRow(f, outcome, invoke_ns=random.randrange(60), complete_ns=60, op=op))  # type: ignore[arg-type]
    reader = [HistoryRow("isolation", "ok", session=1)]
    reader += [
        told(random.randrange(45), random.randrange(60), random.randrange(4), random.randrange(1, 3)) for _ in range(12)
    ]
    return producer, reader


@pytest.mark.parametrize("seed", range(60))
def test_the_arrays_find_what_the_oracle_finds(tmp_path: Path, seed: int) -> None:
    """Of any history: the same answers are wrong, for the same causes."""
    producer, reader = drawn(Random(seed))
    write(tmp_path, "producers", producer)
    write(tmp_path, "readers", reader)
    rows = [row for path in sorted(tmp_path.glob("*.arrow")) for row in read_history(path).to_pylist()]
    found = wrong_end_offset(ends_of(tmp_path, client_evidence(rows).transactions))
    assert Counter((each.cause, each.partition, each.offset) for each in found) == Counter(
        (each.cause, each.partition, each.offset) for each in wrong_ends(run_model(), rows, {})
    )


class Batch(NamedTuple):
    """One of a log, as the oracle has it."""

    offset: int
    end: int
    producer_id: int
    what: str


@pytest.mark.parametrize("seed", range(60))
def test_last_stable_offsets_are_those_of_all_high_watermarks(seed: int) -> None:
    """Of any log: an offset was kept from being one if it was none, whatever was replicated."""
    random, log = Random(seed), list[Batch]()
    replay, opened = list[Ended](), dict[int, int]()
    for offset in range(random.randrange(1, 40)):
        producer, what = random.randrange(3), random.choice(("data", "data", "data", "COMMIT", "ABORT", ""))
        log.append(Batch(offset, offset + 1, producer, what))
        if what == "data":
            opened.setdefault(producer, offset)
        elif what:
            replay.append(Ended(producer, 0, 0, opened.pop(producer, -1), offset, 0, -1, 0))
    still = {producer: Opened(producer, 0, first) for producer, first in opened.items()}
    stable = StableRegions({(TOPIC, 0): LogTransactions(TOPIC, 0, 1, True, replay, still)})
    possible = stable_offsets(log)  # type: ignore[arg-type]
    for offset in range(len(log) + 1):
        assert (stable.open_at((TOPIC, 0), offset) is None) == (offset in possible)


def test_an_answer_that_is_wrong_is_told_with_what_lies_below(tmp_path: Path) -> None:
    """The one of all below that was sent last; an answer that came at the same moment is legal."""
    write(tmp_path, "producers", [sent(0, 5), sent(1, 3_000_000), sent(2, 9_000_000)])
    write(tmp_path, "readers", [told(2, 1_000_000), told(2, 3_000_000), told(3, 9_000_000)])
    [found] = wrong_end_offset(ends_of(tmp_path))
    [sentence] = map(explain.sentence, summed_up([found]))
    assert sentence == (
        "t-0: readers (session 1) was told that it ends at offset 2, 2.000 ms before what is at offset 1 was sent"
    )


def test_where_leaders_may_lose_records_ends_are_not_judged(tmp_path: Path) -> None:
    """An offset that was lost is another record's later."""
    directory = RunDirectory(tmp_path).prepare()
    write(directory.history_dir, "producers", [sent(0, 5)])
    write(directory.history_dir, "readers", [told(1, 4)])
    run = run_model()
    assert [each.check for each in transactional(directory, run)] == ["wrong-end-offset"]
    unclean = replace(run.settings, unclean_leader_election=True)
    assert transactional(directory, replace(run, settings=unclean)) == ()
