"""What a row of a history may be: each row that nobody can have written takes ``valid`` away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.stories import TOPIC, Story, clean
from tests.verifier.test_completeness import FACTS, RUN, a_run_of, said_by, told
from tests.verifier.test_verdict import closing_of
from verifier.closing.closing import Closing, gather
from verifier.completeness import incomplete
from verifier.doubts import HISTORIES
from verifier.evidence import history, seal
from verifier.evidence.history import HistoryRow, HistoryWriter


def unsent(outcome: str) -> Closing:
    """A producer says of sequences that it never handed them to its client, with this outcome."""
    story = clean()
    rows = story.rows["producer-1"]
    first = next(row for row in rows if row.f == "reserve")
    rows[rows.index(first)] = first._replace(last_sequence=first.last_sequence + 2)
    more = {"first_sequence": first.last_sequence + 1, "last_sequence": first.last_sequence + 2}
    rows.append(first._replace(f="unsent", type=outcome, **more))  # type: ignore[arg-type]
    return closing_of(story)


def written_as(process: str, other: str) -> Closing:
    """One row of a history says in its own column that another process wrote it."""

    class OneRowOfAnother(HistoryWriter):
        def close(self) -> None:
            self.flush()
            self._process, kept = other, self._process
            self.append(HistoryRow("note", "info"))
            self.flush()
            self._process = kept
            super().close()

    story = clean()
    with TemporaryDirectory() as path:
        directory = story.write(Path(path))
        writer = OneRowOfAnother(directory.history(process), process, _Clock())
        for row in story.rows[process]:
            writer.append(row)
        writer.close()
        seal.take(directory)
        return gather(directory, story.model())


class _Clock:
    def monotonic_ns(self) -> int:
        return 0


def rows(process: str, f: str, **changes: object) -> Callable[[], Closing]:
    return lambda: closing_of(told(process, f, 0, **changes))


def also(process: str, row: HistoryRow) -> Callable[[], Closing]:
    return lambda: closing_of(said_by(process, row))


def without_watermarks() -> Story:
    """The live reader never learned one."""
    story = clean()
    story.rows["reader-1"] = [each._replace(high_watermark=-1) for each in story.rows["reader-1"]]
    return story


def placed_nowhere(process: str, *more: HistoryRow) -> Story:
    """The first batch of stream 1 was acknowledged, and nobody was told where it stands."""
    story = told(process, "send", 0, first_offset=-1, last_offset=-1)
    story.rows[process] += more
    return story


CASES: dict[str, Callable[[], Closing]] = {
    "producer-1.arrow has unsent/info rows": lambda: unsent("info"),
    "producer-1.arrow has unsent/invoke rows": lambda: unsent("invoke"),
    "producer-1.arrow has send/invoke rows": rows("producer-1", "send", type="invoke"),
    "producer-1.arrow has reserve/ok rows": rows("producer-1", "reserve", type="ok"),
    "sentinel.arrow has sentinel/fail rows": rows("sentinel", "sentinel", type="fail"),
    "reader-1.arrow has poll/info rows": rows("reader-1", "poll", type="info"),
    "final-1.arrow has assign/fail rows": rows("final-1", "assign", type="fail"),
    "producer-1.arrow has retry/ok rows": also("producer-1", HistoryRow("retry", "ok", TOPIC, 0, 1, 0, 2)),
    "producer-1.arrow has vote/ok rows": also("producer-1", HistoryRow("vote", "ok")),  # type: ignore[arg-type]
    "reader-1.arrow has 1 poll rows without an offset": rows("reader-1", "poll", first_offset=-1, last_offset=-1),
    "final-1.arrow has 1 poll rows without an offset": rows("final-1", "poll", first_offset=-2, last_offset=-2),
    "reader-1.arrow has 1 poll rows that do not say what was read": rows(
        "reader-1", "poll", stream=-1, first_sequence=-1, last_sequence=-1
    ),
    "final-1.arrow has 1 poll rows that do not say what was read": rows("final-1", "poll", first_sequence=1),
    "reader-1.arrow has seek rows": also("reader-1", HistoryRow("seek", "ok", TOPIC, 0, first_offset=9)),
    "final-1.arrow has seek rows": also("final-1", HistoryRow("seek", "ok", TOPIC, 0, first_offset=9, phase="final")),
    "reader-1.arrow has 8 poll rows of which 0 tell a high watermark": lambda: closing_of(without_watermarks()),
    "reader-1 was first assigned t-0 at offset 3, not at 0": rows("reader-1", "assign", first_offset=3, last_offset=3),
    "final-1 was first assigned t-0 at offset 9, not at 0": rows("final-1", "assign", first_offset=9, last_offset=9),
    "reader-1.arrow has rows that hermes-1 wrote": lambda: written_as("reader-1", "hermes-1"),
    "reader-1.arrow has poll rows of the phase final": rows("reader-1", "poll", phase="final"),
    "final-1.arrow has poll rows of the phase load": rows("final-1", "poll", phase="load"),
    "sentinel.arrow has sentinel rows of the phase load": rows("sentinel", "sentinel", phase="load"),
    "; the first is s1/0..2 in t-0, from -1 ": rows("producer-1", "send", invoke_ns=-1),
    "producer-1.arrow has 1 send row with impossible times": rows("producer-1", "send", complete_ns=-1),
    "sentinel.arrow has 1 sentinel row with impossible times": rows("sentinel", "sentinel", invoke_ns=-1),
    "reader-1.arrow has 1 poll row with impossible times": rows("reader-1", "poll", complete_ns=-1),
    "final-1.arrow has 1 poll row with impossible times": rows("final-1", "poll", complete_ns=0),
    "reader-1.arrow has 1 idle row with impossible times": also("reader-1", HistoryRow("idle", "ok", complete_ns=-1)),
    "producer-1.arrow has 1 commit row with impossible times": also(
        "producer-1", HistoryRow("commit", "info", op=0, invoke_ns=5, complete_ns=4)
    ),
    "producer-1.arrow has 1 begin row with impossible times": also("producer-1", HistoryRow("begin", "ok", op=0)),
    "reader-1.arrow has abort rows, which": also(
        "reader-1", HistoryRow("abort", "ok", op=0, invoke_ns=1, complete_ns=2)
    ),
    "producer-1.arrow has isolation rows, which": also("producer-1", HistoryRow("isolation", "ok", session=1)),
    "producer-1.arrow has begin/info rows": also(
        "producer-1", HistoryRow("begin", "info", op=0, invoke_ns=1, complete_ns=2)
    ),
    "producer-1.arrow has send rows of the phase final": rows("producer-1", "send", phase="final"),
}


@pytest.mark.parametrize("reason", CASES)
def test_a_row_that_nobody_can_have_written_blinds_what_clients_were_told(reason: str) -> None:
    """Its type, its offsets, its process and its phase are those that the role of its process has."""
    doubts = incomplete(RUN, FACTS, CASES[reason]())
    found = [doubt for doubt in doubts if reason in doubt.reason]
    assert len(found) == 1, doubts
    assert found[0].blinds == HISTORIES


def test_rows_of_transactions_are_legal() -> None:
    """From a producer what it began, took and ended in any way; from readers, live and final, what they are handed."""
    story = clean()
    times = {"op": 0, "invoke_ns": 1, "complete_ns": 2}
    story.rows["producer-1"] += [
        HistoryRow("begin", "ok", **times),
        HistoryRow("offsets", "info", TOPIC, 0, first_offset=0, last_offset=2, **times),
        *(HistoryRow(f, kind, **times) for f in ("commit", "abort") for kind in ("ok", "fail", "info")),
    ]
    story.rows["reader-1"].insert(0, HistoryRow("isolation", "ok", session=1))
    story.rows["final-1"].insert(0, HistoryRow("isolation", "ok", session=1, phase="final"))
    doubts = incomplete(RUN, FACTS, closing_of(story))
    assert doubts == incomplete(RUN, FACTS, closing_of(clean()))


def test_what_was_read_and_is_no_value_has_its_offsets() -> None:
    """A record that cannot be decoded has no sequence, but it has an offset: that row is legal."""
    story: Story = said_by(
        "reader-1",
        HistoryRow(
            "poll", "ok", TOPIC, 0, first_offset=25, last_offset=25, error="undecodable: x", invoke_ns=0, complete_ns=0
        ),
    )
    doubts = incomplete(RUN, FACTS, closing_of(story))
    assert [doubt.reason for doubt in doubts if "poll rows" in doubt.reason] == []


def test_every_kind_of_row_has_its_outcomes() -> None:
    """The verifier's table of kinds is the history's: a new function of the history needs an entry."""
    from typing import get_args

    from verifier.completeness.rows import OUTCOMES

    assert set(OUTCOMES) | {"total"} == set(get_args(history.Function))
    assert set().union(*OUTCOMES.values()) == set(get_args(history.HistoryOutcome))


def test_a_later_assignment_may_begin_where_its_reader_had_come() -> None:
    """Only the first one of a partition must begin at 0."""
    story: Story = said_by("reader-1", HistoryRow("assign", "ok", TOPIC, 0, first_offset=25, last_offset=25, session=2))
    assert [doubt.reason for doubt in incomplete(RUN, FACTS, closing_of(story)) if "assigned" in doubt.reason] == []


@pytest.mark.parametrize(
    ("process", "f"), [("producer-1", "send"), ("sentinel", "sentinel"), ("reader-1", "poll"), ("final-1", "poll")]
)
def test_an_outcome_may_be_known_at_once(process: str, f: str) -> None:
    """A clock that did not move between the two is no contradiction, not even at 0."""
    story = told(process, f, 0, invoke_ns=0, complete_ns=0)
    assert [
        doubt.reason for doubt in incomplete(RUN, FACTS, closing_of(story)) if "impossible times" in doubt.reason
    ] == []


WHOLE, PARTS = ((0, 2),), ((0, 1), (2, 2))


@pytest.mark.parametrize(
    ("acks", "idempotence", "sent_again", "reason"),
    [
        ("all", True, (), "s1/0..2 acknowledged without an offset, and never sent again"),
        ("all", True, PARTS[:1], "s1/2 acknowledged without an offset, and never sent again"),
        ("all", True, WHOLE, None),
        ("all", True, PARTS, None),
        ("all", False, WHOLE, "has acknowledgements without an offset in t-0"),
        ("1", False, (), "has acknowledgements without an offset in t-0"),
        ("0", False, (), None),
    ],
)
def test_an_acknowledgement_without_an_offset_needs_a_retry(
    acks: str, idempotence: bool, sent_again: tuple[tuple[int, int], ...], reason: str | None
) -> None:
    """Only a batch that the broker had already has no place: it was sent before. With acks=0 nothing has one."""
    again = [HistoryRow("retry", "info", TOPIC, 0, 1, *each, count=3) for each in sent_again]
    closing = closing_of(placed_nowhere("producer-1", *again))
    doubts = incomplete(a_run_of(idempotence=idempotence, acks=acks), FACTS, closing)
    found = [each for each in doubts if "without an offset" in each.reason]
    assert [each.blinds for each in found] == ([] if reason is None else [HISTORIES])
    assert reason is None or reason in found[0].reason
