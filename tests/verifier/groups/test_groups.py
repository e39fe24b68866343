"""The checks of consumer groups: exact cases, and random histories beside the oracle."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.verifier.oracle import groups as oracle
from tests.verifier.planted import PLANTED, planted_story
from tests.verifier.planted import groups as planted
from verifier import explain
from verifier.evidence.history import HistoryRow
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition
from verifier.files.headers import NO_CONTROL, Headers
from verifier.groups.group_checks import audit, figures_of, of_groups
from verifier.groups.logs import readable_log
from verifier.groups.model import GroupEvidence, OffsetSpan, ReadableLog, Spans
from verifier.groups.rows import group_partitions
from verifier.report.summary import groups_text
from verifier.segments.markers import ABORT, COMMIT, TRANSACTIONAL
from verifier.segments.walk import CONTROL
from verifier.transactions.transaction_checks import summed_up

CASES = 5_000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 300
PLACE = ("t", 0)

Row = dict[str, Any]


def row(f: Any, session: int = 1, kind: Any = "ok", process: str = "m", **fields: Any) -> Row:
    where: Row = {} if f in ("member", "commit", "abort") else {"topic": "t", "partition": 0}
    return HistoryRow(f, kind, session=session, **where, **fields)._asdict() | {"process": process}


def member(session: int, generation: int = 1, at: int = 0) -> Row:
    return row("member", session, error=f"g id-{session}", incarnation=generation, invoke_ns=at, complete_ns=at)


def at(f: Any, session: int, offset: int, begin: int, end: int, kind: Any = "ok", **fields: Any) -> Row:
    given = {"first_offset": offset, "last_offset": offset, "invoke_ns": begin, "complete_ns": end} | fields
    return row(f, session, kind, **given)


def resume(session: int, offset: int, begin: int, end: int) -> Row:
    return at("resume", session, offset, begin, end)


def commit(session: int, offset: int, begin: int, end: int, kind: str = "ok", generation: int = -1) -> Row:
    return at("offset-commit", session, offset, begin, end, kind, incarnation=generation)


def polled(session: int, first: int, last: int) -> Row:
    return row("poll", session, first_offset=first, last_offset=last)


def evidence(rows: list[Row], holes: set[int] = frozenset(), *, end: int = 20, is_whole: bool = True) -> GroupEvidence:  # type: ignore[assignment]
    """The log has a record at every offset below ``end`` but these."""
    spans = Spans([OffsetSpan(offset, offset) for offset in range(end) if offset not in holes])
    return GroupEvidence(group_partitions(rows, {PLACE: ReadableLog(0, spans)}, is_whole=is_whole))


def names(rows: list[Row], **given: Any) -> dict[tuple[str, str | None], int]:
    return dict(Counter((each.check, each.cause) for each in audit(evidence(rows, **given))))


WHOLE = [member(1), resume(1, 0, 1, 2), polled(1, 0, 9), commit(1, 10, 3, 4), member(2, 2), polled(2, 10, 19)]


@pytest.mark.parametrize(
    ("offset", "more", "holes", "wanted"),
    [
        (10, [], set(), None),
        (11, [], set(), ("resume-position", "skipped")),
        (11, [], {10}, None),
        (9, [], set(), ("committed-offset-regression", "resumed")),
        (9, [], {9}, ("committed-offset-regression", "resumed")),
        (0, [], set(), ("committed-offset-regression", "resumed")),
        # it may have been carried out, at any time
        (5, [commit(1, 5, 2, 3, "info")], set(), None),
        (5, [commit(1, 5, 2, 3, "fail")], set(), ("committed-offset-regression", "resumed")),
        # they overlap: either may have been the last
        (7, [commit(1, 7, 2, 3)], set(), None),
        (7, [commit(1, 7, 1, 2)], set(), ("committed-offset-regression", "resumed")),
        # it was lowered
        (7, [commit(1, 7, 5, 6)], set(), None),
        (10, [commit(1, 7, 5, 6)], set(), ("resume-position", "skipped")),
        # a commit while the member is being assigned the partition may come before or after its question
        (12, [commit(1, 12, 11, 13)], set(), None),
        (10, [commit(1, 12, 11, 13)], set(), None),
        (12, [commit(1, 12, 21, 22)], set(), ("resume-position", "skipped")),
    ],
)
def test_where_a_member_may_begin(
    offset: int, more: list[Row], holes: set[int], wanted: tuple[str, str] | None
) -> None:
    """At every committed offset that it may have been told, and at no other."""
    rows = [*WHOLE, *more, resume(2, offset, 10, 20)]
    assert names(rows, holes=holes) == ({} if wanted is None else {wanted: 1})


def tried(generation: int, later: int, done: int = 6) -> list[Row]:
    """A member tried to commit 5; one committed 10 afterwards, and a third one begins at 5, from 10 on."""
    return [
        member(1, 1), resume(1, 0, 1, 2), polled(1, 0, 9), commit(1, 5, 2, 3, "info", generation), member(2, 2),
        commit(2, 10, 5, done, generation=later), member(3, 3), resume(3, 5, 10, 20),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "is_wrong"),
    [
        (tried(1, 2), True),
        # it may be carried out at any time as long as its generation lasts, or as no one knows that it is over
        (tried(1, 1), False),
        (tried(2, 1), False),
        (tried(-1, 2), False),
        (tried(1, -1), False),
        (tried(1, 2, done=10), False),
    ],
)
def test_what_a_generation_tried_to_commit_is_over_with_it(rows: list[Row], is_wrong: bool) -> None:
    """A later generation has committed, before the member was assigned the partition."""
    assert names(rows) == ({("committed-offset-regression", "resumed"): 1} if is_wrong else {})


def test_a_session_is_a_members_wherever_that_is_said() -> None:
    """A member's session is known as such also if its row comes behind the rows of what it was handed."""
    rows = [*WHOLE, resume(2, 9, 10, 20)]
    wanted = names(rows)
    assert wanted == {("committed-offset-regression", "resumed"): 1}
    assert names(sorted(rows, key=lambda each: bool(each["f"] == "member"))) == wanted


def test_a_first_member_begins_at_the_start() -> None:
    """auto.offset.reset=earliest; unless something may have been committed before."""
    begins = [member(1), resume(1, 3, 1, 2), polled(1, 3, 5)]
    assert names(begins) == {("resume-position", "reset"): 1}
    assert names([*begins, commit(1, 3, 0, 9, "info")]) == {}
    assert names(begins, holes={0, 1, 2}) == {}


def test_a_group_is_complete() -> None:
    """What it committed past was delivered to someone; what is not known to be missing is not missing."""
    rows = [member(1), resume(1, 0, 1, 2), polled(1, 0, 4), polled(1, 7, 9), commit(1, 10, 3, 4)]
    assert names(rows) == {("group-completeness", None): 1}
    (found,) = audit(evidence(rows))
    assert (found.offset, found.detail["last_offset"]) == (5, 6)
    assert names(rows, holes={5, 6}) == {}
    assert names(rows, is_whole=False) == {}
    assert names([*rows, member(2), polled(2, 5, 6)]) == {}
    assert names([each | {"type": "info"} if each["f"] == "offset-commit" else each for each in rows]) == {}
    # above what was committed, nothing is owed
    assert names([member(1), resume(1, 0, 1, 2), polled(1, 0, 4), commit(1, 5, 3, 4)]) == {}


def test_a_generation_that_is_over_commits_nothing() -> None:
    """A lower offset of an earlier generation, begun after one of a later generation was acknowledged."""
    before = [member(1, 1), resume(1, 0, 1, 2), polled(1, 0, 9), member(2, 2), commit(2, 10, 3, 4, generation=2)]
    wanted = {("committed-offset-regression", "stale-generation"): 1}
    assert names([*before, commit(1, 8, 5, 6, generation=1)]) == wanted
    assert names([*before, commit(1, 8, 4, 6, generation=1)]) == {}, "they overlap"
    assert names([*before, commit(1, 10, 5, 6, generation=1)]) == {}, "it does not go back"
    assert names([*before, commit(1, 8, 5, 6, generation=2)]) == {}
    assert names([*before, commit(1, 8, 5, 6)]) == {}, "of which generation it is is not known"
    assert names([*before, commit(1, 8, 5, 6, "info", generation=1)]) == {}


A, B = "place-0-" + 36 * "a", "place-0-" + 36 * "b"


@pytest.mark.parametrize(
    ("second", "ends", "is_double"),
    [
        (("other", 1), [], True),
        (("other", 2), [], False),
        (("other", -1), [], False),
        # it was there first, and is told of twice
        ((A, 1), [], False),
        # its next life, as a static member
        ((B, 1), [], False),
        (("other", 1), [row("revoke", 1, invoke_ns=9, complete_ns=9)], False),
        (("other", 1), [row("revoke", 1, invoke_ns=11, complete_ns=11)], True),
        (("other", 1), [row("leave", 1, invoke_ns=9, complete_ns=9)], False),
        (("other", 1), [row("leave", 1, invoke_ns=11, complete_ns=11)], True),
        # of a later session of the same member, and of another one
        (("other", 1), [row("member", 3, error=f"g {A}", incarnation=2), row("leave", 3, invoke_ns=9)], False),
        (("other", 1), [row("member", 3, error="g third", incarnation=2), row("leave", 3, invoke_ns=9)], True),
    ],
)
def test_a_partition_has_one_member_in_a_generation(second: tuple[str, int], ends: list[Row], is_double: bool) -> None:
    """Unless the first one gave it away, or is gone, before the second one got it."""
    name, generation = second
    rows = [
        row("member", 1, error=f"g {A}", incarnation=1), resume(1, 0, 1, 2),
        row("member", 2, error=f"g {name}", incarnation=generation), resume(2, 0, 10, 12),
        *ends,
    ]  # fmt: skip
    assert names(rows) == ({("double-assignment", None): 1} if is_double else {})
    assert [each.check for each in oracle.judge(rows, {})] == (["double-assignment"] if is_double else [])


def test_offsets_of_transactions_are_committed_with_them() -> None:
    """One further than the last input; certain if the transaction is, impossible if it was aborted."""
    begun = [member(1), resume(1, 0, 1, 2), polled(1, 0, 9), row("offsets", first_offset=0, last_offset=9, op=5)]
    begun[-1] |= {"invoke_ns": 3, "complete_ns": 4}
    later = [member(2, 2), resume(2, 0, 10, 20)]
    committed = row("commit", op=5, invoke_ns=5, complete_ns=6)
    assert names([*begun, committed, *later]) == {("committed-offset-regression", "resumed"): 1}
    assert names([*begun, committed | {"type": "info"}, *later]) == {}
    assert names([*begun, row("abort", op=5, invoke_ns=5, complete_ns=6), *later]) == {}
    begins_there = [member(2, 2), resume(2, 10, 10, 20)]
    assert names([*begun, committed, *begins_there]) == {}
    wanted = {("resume-position", "reset"): 1}
    assert names([*begun, row("abort", op=5, invoke_ns=5, complete_ns=6), *begins_there]) == wanted


def test_deliveries_that_come_again_are_counted() -> None:
    """Each delivery of a record after the first is counted, and accuses no one."""
    rows = [member(1), polled(1, 0, 9), polled(1, 5, 9), member(2), polled(2, 8, 12)]
    ((_, partition),) = evidence(rows).partitions.items()
    assert partition.delivered_again == 7
    wanted = {"g": {"delivered": 20, "delivered_again": 7, "resumed": 0}}
    assert figures_of(evidence(rows).partitions) == wanted
    assert groups_text(wanted) == "g: 20 delivered, 7 of them again; 0 times a member began to read a partition"


def test_what_a_log_has_for_a_group() -> None:
    """Records that are not of a transaction, and those that were committed; no control records."""
    batches = [
        (0, 4, -1, 0, NO_CONTROL),
        (5, 6, 7, TRANSACTIONAL, NO_CONTROL),
        (7, 8, 8, TRANSACTIONAL, NO_CONTROL),
        (9, 9, 7, TRANSACTIONAL | CONTROL, ABORT),
        (10, 10, 8, TRANSACTIONAL | CONTROL, COMMIT),
        (11, 12, 7, TRANSACTIONAL, NO_CONTROL),
        (13, 20, -1, 0, NO_CONTROL),
    ]
    base, last, producers, attributes, markers = (np.array(column) for column in zip(*batches, strict=True))
    nothing = np.zeros(base.size, dtype=np.int64)
    headers = Headers(
        0, 0, 0, "", base, base, last, nothing, nothing, producers, nothing, nothing, attributes, last - base + 1,
        markers, nothing,
    )  # fmt: skip
    final = FinalPartition("t", 0, high_watermark=16, log_start_offset=2)
    assert list(readable_log([headers], final, committed_only=True).records) == [
        OffsetSpan(2, 4), OffsetSpan(7, 8), OffsetSpan(13, 15),
    ]  # fmt: skip
    assert list(readable_log([headers], final, committed_only=False).records) == [
        OffsetSpan(2, 8), OffsetSpan(11, 15),
    ]  # fmt: skip


@pytest.mark.parametrize("name", planted.PLANTED)
def test_a_planted_run_is_found_out(tmp_path: Any, name: str) -> None:
    """From its files, as the oracle does, and with a sentence for each."""
    story = planted_story(name)
    directory: RunDirectory = story.write(tmp_path / "run", sealed=False)
    found = of_groups(directory, story.model())
    assert {(each.check, each.cause) for each in found} == set(PLANTED[name].expected)
    run, rows = oracle_reads(directory)
    twin = oracle.find_all(directory, run, rows)
    assert sorted((each.check, each.cause, each.offset) for each in twin) == sorted(
        (each.check, each.cause, each.offset) for each in found
    )
    for each in found:
        assert explain.sentence(each).startswith(f"{each.topic}-0: ")


def oracle_reads(directory: RunDirectory) -> Any:
    from tests.verifier.oracle.reading import read

    return read(directory)


def drawn(random: Random) -> tuple[list[Row], set[int]]:
    """Members of up to three generations do anything at any time."""
    rows: list[Row] = []
    generations = random.choice([(1, 2, 3), (1, 1, 2), (1, 1, 1)])
    for session, generation in enumerate(generations, 1):
        rows.append(member(session, generation))
    for _ in range(random.randrange(1, 12)):
        session = random.randrange(1, 4)
        begin = random.randrange(30)
        end = begin + random.randrange(4)
        offset = random.randrange(9)
        match random.randrange(5):
            case 0:
                rows.append(resume(session, offset, begin, end))
            case 4:
                rows.append(row(random.choice(["revoke", "leave"]), session, invoke_ns=begin, complete_ns=begin))
            case 1:
                rows.append(polled(session, offset, offset + random.randrange(5)))
            case _:
                kind = random.choice(["ok", "ok", "ok", "info", "fail"])
                rows.append(commit(session, offset, begin, end, kind, random.choice([-1, session, session])))
    return rows, {random.randrange(12) for _ in range(random.randrange(5))}


def test_random_histories_are_judged_as_by_the_oracle() -> None:
    """Whatever members did, the checks find what the oracle finds."""
    for seed in range(CASES):
        rows, holes = drawn(Random(seed))
        mine = [(each.check, each.cause, each.offset) for each in audit(evidence(rows, holes, end=12))]
        log = {offset for offset in range(12) if offset not in holes}
        twin = [(each.check, each.cause, each.offset) for each in oracle.judge(rows, {PLACE: (0, log)})]
        assert sorted(mine, key=str) == sorted(twin, key=str), f"seed {seed}"
        assert all(explain.sentence(each) for each in summed_up(audit(evidence(rows, holes, end=12))))
