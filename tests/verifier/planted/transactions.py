"""Planted examples for the anomalies of transactions, each with its nearest legal neighbor.

Producer 1001 writes all values, in both partitions, in one transaction of the transactional id ``x``, which is decided
behind the sentinel. The many small cases are in ``tests/verifier/transactions``; these are whole runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

from tests.support.stories import SECOND, SENTINEL_STREAM, TOPIC, Batch, Story, clean
from tests.support.transaction_bytes import (
    ABORT,
    COMMIT,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TRANSACTIONAL,
    marker,
    state_log,
    state_value,
)
from tests.verifier.planted.groups import may_lose_records
from tests.verifier.planted.headers import both
from tests.verifier.planted.model import Planted
from tests.verifier.planted.timing import told_end
from verifier.evidence.history import Function, HistoryRow

P0, P1 = (TOPIC, 0), (TOPIC, 1)
PRODUCER = 1001
#: (kind, epoch) of the markers that end a partition's log, and perhaps the epoch of the coordinator.
Markers = Sequence[tuple[int, ...]]
_PREPARE = {COMMIT: PREPARE_COMMIT, ABORT: PREPARE_ABORT}
_COMPLETE = {COMMIT: COMPLETE_COMMIT, ABORT: COMPLETE_ABORT}


def decided(kind: int, *topic_partitions: tuple[str, int], epoch: int = 0) -> list[tuple[str, bytes]]:
    """The records of one transaction, from its beginning to its end."""
    return [
        ("x", state_value(ONGOING, PRODUCER, 0, topic_partitions)),
        ("x", state_value(_PREPARE[kind], PRODUCER, epoch, topic_partitions)),
        ("x", state_value(_COMPLETE[kind], PRODUCER, epoch)),
    ]


def written(first: Markers, second: Markers, records: list[tuple[str, bytes]]) -> Callable[[Story], None]:
    """Both logs end with these markers, and the coordinator has these records."""

    def plant(story: Story) -> None:
        two = clean(partitions=2)
        for each in fields(two):
            setattr(story, each.name, getattr(two, each.name))
        story.transaction_state = {0: [], 1: state_log(records)}
        for partition, kinds in enumerate((first, second)):
            place = story.partitions[partition]
            story.everywhere(partition, _in_a_transaction)
            for kind, *epochs in kinds:
                end = marker(place.high_watermark, kind, PRODUCER, *epochs)
                story.everywhere(partition, lambda batches, end=end: batches.append(end))  # type: ignore[misc]
                place.high_watermark += 1
            place.log_end_offsets = dict.fromkeys(place.log_end_offsets, place.high_watermark)

    return plant


def _in_a_transaction(batches: list[Batch]) -> None:
    for index, batch in enumerate(batches):
        if batch.values[0][0] != SENTINEL_STREAM:
            batches[index] = replace(batch, producer_id=PRODUCER, attributes=TRANSACTIONAL)


def by_a_stranger(story: Story) -> None:
    """A marker of a producer of which the coordinators know nothing."""
    place = story.partitions[0]
    story.everywhere(0, lambda batches: batches.append(marker(place.high_watermark, COMMIT, 5000)))
    place.high_watermark += 1
    place.log_end_offsets = dict.fromkeys(place.log_end_offsets, place.high_watermark)


def without_an_entry(story: Story) -> None:
    """A follower's index of aborted transactions says that the last stable offset came further than it did."""
    entry = struct.pack(">hqqqq", 0, PRODUCER, 0, 13, 15)
    story.side_files[3, f"{TOPIC}-0/{0:020d}.txnindex"] = lambda data: entry


def told(*, wrong: bool) -> Callable[[Story], None]:
    """What clients saw: six transactions of one process, which reads all values itself before it is done.

    0 writes to t-0, 1 to t-1; 2 and 3 to both, in opposite orders; 4 to t-0 and 5 to t-1, with inputs. ``wrong``: a
    live reader is handed 0 before its commit; 1 was aborted; 3 began when 2 was committed; 4 and 5 read each other.
    """

    def plant(story: Story) -> None:
        producer = story.rows["producer-1"]
        numbers = {2: (0, 2, 3, 4), 1: (1, 3, 2, 5)}  # by stream, which write to t-0 and t-1
        for at, each in enumerate(producer):
            if each.f == "send":
                producer[at] = each._replace(op=numbers[each.stream][each.first_sequence // 3])
        for number, begun, asked in (
            (0, 1, 300),
            (1, 1, 2),
            (2, 1, 2),
            (3, 5 if wrong else 3, 6),
            (4, 1, 2),
            (5, 1, 2),
        ):
            f: Function = "abort" if wrong and number == 1 else "commit"
            producer.append(of_transaction("begin", number, begun, begun))
            # of one decision, since the client does not know its id
            producer.append(of_transaction(f, number, asked, asked + 2)._replace(producer_id=-1))
        for number, partition in ((4, 1), (5, 0)) if wrong else ((4, 1),):
            inputs = of_transaction("offsets", number, 1, 1)
            producer.append(inputs._replace(topic=TOPIC, partition=partition, first_offset=9, last_offset=11))
        reads = [each for each in story.rows["final-1"] if each.f == "assign" or each.stream < SENTINEL_STREAM]
        producer += [ISOLATED, *(each._replace(phase="load") for each in reads)]
        for process in ("reader-1", "final-1") if wrong else ("final-1",):
            story.rows[process].insert(0, ISOLATED)

    return plant


def isolated(story: Story) -> None:
    """The final reader is handed only what is committed."""
    story.rows["final-1"].insert(0, ISOLATED)


def passed_over(*, f: Function, streams: tuple[int, ...] = (1, 2)) -> Callable[[Story], None]:
    """All is sent in one transaction, of which the client knows the end ``f``; the final reader has none of streams."""

    def plant(story: Story) -> None:
        producer = story.rows["producer-1"]
        producer[:] = [each._replace(op=0) if each.f == "send" else each for each in producer]
        producer += [of_transaction("begin", 0, 1, 1), of_transaction(f, 0, 1, 300)]
        story.rows["final-1"] = [each for each in story.rows["final-1"] if each.stream not in streams]

    return plant


def told_committed(commits: int) -> Callable[[Story], None]:
    """Each stream's values are a transaction. The client was told that the first ``commits`` of them are committed."""

    def plant(story: Story) -> None:
        producer = story.rows["producer-1"]
        # stream 2 writes to t-0, stream 1 to t-1
        numbers = {2: 0, 1: 1}
        producer[:] = [each._replace(op=numbers[each.stream]) if each.f == "send" else each for each in producer]
        for number in (0, 1):
            producer.append(of_transaction("begin", number, 1, 1))
            end = of_transaction("commit", number, 300 + number, 301 + number)
            producer.append(end if number < commits else end._replace(type="info"))

    return plant


def told_whole(story: Story) -> None:
    """All is sent in one transaction, and the client was told that it is committed."""
    passed_over(f="commit", streams=())(story)


def bank(*, torn: bool) -> Callable[[Story], None]:
    """Streams 2 and 3 are a producer's accounts. ``torn``: a final reader is never handed three of the credits."""

    def plant(story: Story) -> None:
        story.kind, story.streams = "bank", (2, 3)
        story.everywhere(1, _renumber)
        for process, rows in story.rows.items():
            story.rows[process] = [each._replace(stream=3) if each.stream == 1 else each for each in rows]
        final = story.rows["final-1"]
        final[:] = [each for each in final if not torn or each.stream != 3 or not 3 <= each.first_sequence <= 5]
        producer = story.rows["producer-1"]
        producer[:] = [each._replace(op=0) if each.f == "send" else each for each in producer]
        producer += [of_transaction("begin", 0, 1, 1), of_transaction("commit", 0, 1, 300)]
        story.rows["reader-1"].insert(0, ISOLATED)
        isolated(story)

    return plant


def _renumber(batches: list[Batch]) -> None:
    for index, batch in enumerate(batches):
        batches[index] = replace(batch, values=tuple((3 if s == 1 else s, sequence) for s, sequence in batch.values))


def of_transaction(f: Function, number: int, asked: int, done: int) -> HistoryRow:
    """Times are in tenths of a second; the live reader is handed the first values after one second."""
    times = {"invoke_ns": asked * SECOND // 10, "complete_ns": done * SECOND // 10}
    return HistoryRow(f, "ok", op=number, producer_id=PRODUCER, **times)


ISOLATED = HistoryRow("isolation", "ok", session=1)

COMMITTED = decided(COMMIT, P0, P1)
ABORTED = decided(ABORT, P0, P1)

PLANTED: Mapping[str, Planted] = {
    "what clients see of transactions": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told(wrong=False))
    ),
    "what no client may see of transactions": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told(wrong=True)),
        {
            ("G1a", None): {"count": 7, "partition": 1, "offset": 0},
            ("precommitted-read", None): {"count": 1, "partition": 0, "offset": 0},
            ("G1c", None): {"count": 1, "partition": 0, "offset": 9},
            ("G0", None): {"count": 1, "partition": 0, "offset": 6},
        },
        neighbor="what clients see of transactions",
    ),
    "an end beyond what is decided": Planted(
        both(
            both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told(wrong=False)),
            told_end(14, 30_000, is_committed=True),
        ),
    ),
    "an end beyond what is open, to a reader of everything": Planted(
        both(both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told(wrong=False)), told_end(14, 29_999)),
    ),
    "an end beyond what is open": Planted(
        both(
            both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told(wrong=False)),
            told_end(14, 29_999, is_committed=True),
        ),
        {("wrong-end-offset", "undecided"): {"count": 1, "partition": 0, "offset": 14}},
        neighbor="an end beyond what is decided",
    ),
    "an end where a transaction begins": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], ABORTED), told_end(0, 30_000, is_committed=True))
    ),
    "an end inside a transaction": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], ABORTED), told_end(3, 30_000, is_committed=True)),
        {("wrong-end-offset", "undecided"): {"count": 1, "partition": 0, "offset": 3}},
        neighbor="an end where a transaction begins",
    ),
    "as many commits as were decided": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], [*decided(COMMIT, P0), *decided(COMMIT, P1)]), told_committed(2))
    ),
    "a commit that no coordinator decided": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told_committed(2)),
        {("undecided-commit", None): {"count": 1, "partition": 0, "offset": 0}},
        neighbor="as many commits as were decided",
    ),
    "a commit that no coordinator decided, and one without an answer that was": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told_committed(1)),
        {("undecided-commit", None): {"count": 1, "partition": 0, "offset": 0}},
        neighbor="as many commits as were decided",
    ),
    "a commit that no coordinator decided, beside a topic that may lose records": Planted(
        both(both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told_committed(2)), may_lose_records),
        {("undecided-commit", None): {"count": 1, "partition": 0, "offset": 0}},
        neighbor="as many commits as were decided",
    ),
    "a commit that was decided for all its partitions": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), told_whole)
    ),
    "a commit that was decided without one of its partitions": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], [*decided(COMMIT, P0), *decided(COMMIT, P1)]), told_whole),
        {("undecided-commit", None): {"count": 1, "partition": 0, "offset": 0}},
        neighbor="a commit that was decided for all its partitions",
    ),
    "a reader that is not handed what was aborted": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], ABORTED), both(passed_over(f="abort"), isolated))
    ),
    "a reader that is not handed what its client committed": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], ABORTED), both(passed_over(f="commit", streams=(2,)), isolated)),
        {
            ("aborted-commit", None): {"count": 1, "partition": 1, "offset": 0},
            ("undecided-commit", None): {"count": 1, "partition": 0, "offset": 0},
            ("unseen", None): {"count": 12, "partition": 0, "offset": 0},
            ("poll-skip", None): {"count": 1, "partition": 0, "offset": 12, "size": 12},
        },
        neighbor="a reader that is not handed what was aborted",
    ),
    "a reader of everything that is not handed what was aborted": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], ABORTED), passed_over(f="abort", streams=(2,))),
        {
            ("unseen", None): {"count": 12, "partition": 0, "offset": 0},
            ("poll-skip", None): {"count": 1, "partition": 0, "offset": 12, "size": 12},
        },
        neighbor="a reader that is not handed what was aborted",
    ),
    "a bank whose transfers have both sides": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), bank(torn=False))
    ),
    "a bank whose debits were handed over without their credits": Planted(
        both(written([(COMMIT, 0)], [(COMMIT, 0)], COMMITTED), bank(torn=True)),
        {
            ("bank-total", None): {"count": 3, "partition": 0, "offset": 3},
            ("unseen", None): {"count": 3, "partition": 1, "offset": 3},
            ("poll-skip", None): {"count": 1, "partition": 1, "offset": 6, "size": 3},
        },
        neighbor="a bank whose transfers have both sides",
    ),
    "a transaction that is committed": Planted(
        written(
            [(COMMIT, 0), (ABORT, 0), (ABORT, 1)],
            [(COMMIT, 0), (COMMIT, 0)],
            [*COMMITTED, *decided(ABORT, P0), *decided(ABORT, P0, epoch=1), *decided(COMMIT, P0, P1)[:1]],
        )
    ),
    "a transaction that is aborted": Planted(written([(ABORT, 0)], [(ABORT, 0)], ABORTED)),
    "a transaction that is torn": Planted(
        written([(COMMIT, 0)], [(ABORT, 0)], COMMITTED),
        {
            ("torn-transaction", None): {"count": 1, "partition": 1, "offset": 13},
            ("marker-audit", "opposite"): {"count": 1, "partition": 1, "offset": 13},
        },
        neighbor="a transaction that is committed",
    ),
    "a transaction without one of its markers": Planted(
        written([(ABORT, 0)], [], ABORTED),
        {
            ("marker-audit", "missing"): {"count": 1, "partition": 1, "offset": None},
            ("hanging-transaction", None): {"count": 1, "partition": 1, "offset": 0},
        },
        neighbor="a transaction that is aborted",
    ),
    "decisions that nobody made": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], [*ABORTED[:2], COMMITTED[2], *ABORTED[2:]]), by_a_stranger),
        {
            ("marker-audit", "stray"): {"count": 1, "partition": 0, "offset": 14},
            ("marker-audit", "decisions"): {"count": 1, "topic": "__transaction_state", "partition": 1, "offset": 2},
        },
        neighbor="a transaction that is aborted",
    ),
    "a fence that aborts what was open": Planted(
        written([(ABORT, 1)], [(ABORT, 1)], decided(ABORT, P0, P1, epoch=1)),
    ),
    "a commit that ends what was open before the fence": Planted(
        written([(COMMIT, 1)], [(COMMIT, 1)], decided(COMMIT, P0, P1, epoch=1)),
        {("marker-audit", "former-epoch"): {"count": 1, "partition": 1, "offset": 13}},
        neighbor="a fence that aborts what was open",
    ),
    "a marker that the next coordinator sends again": Planted(
        written([(COMMIT, 0, 4), (COMMIT, 0, 5)], [(COMMIT, 0, 5)], COMMITTED),
    ),
    "a marker of a coordinator that was replaced": Planted(
        written([(COMMIT, 0, 5), (COMMIT, 0, 4)], [(COMMIT, 0, 5)], COMMITTED),
        {("marker-audit", "former-coordinator"): {"count": 1, "partition": 0, "offset": 14}},
        neighbor="a marker that the next coordinator sends again",
    ),
    "an epoch that a marker had ended": Planted(
        written(
            [(COMMIT, 0), (ABORT, 1), (COMMIT, 0)],
            [(COMMIT, 0)],
            [*COMMITTED, *decided(ABORT, P0, epoch=1)],
        ),
        {("zombie-write", None): {"count": 1, "partition": 0, "offset": 15}},
        neighbor="a transaction that is committed",
    ),
    "an index that lets aborted records through": Planted(
        both(written([(ABORT, 0)], [(ABORT, 0)], ABORTED), without_an_entry),
        {("aborted-index-audit", None): {"count": 1, "partition": 0, "offset": 13}},
        neighbor="a transaction that is aborted",
    ),
}
