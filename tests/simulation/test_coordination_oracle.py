"""What must hold of transactions and groups: each anomaly is named, and its nearest legal neighbor is not.

The logs are made of real batches; what programs were told is written down here.
"""

from __future__ import annotations

import pytest

from cluster.coordinator.group.records import CommittedOffset, offset_key, offset_value
from cluster.coordinator.transaction.records import encode_key, encode_value
from cluster.coordinator.transaction.state import PREPARED, TransactionState, TransitMetadata
from cluster.protocol.control_records import ControlRecordType, EndTransactionMarker, build_marker_batch
from cluster.protocol.records import NewRecord, build_batch
from tests.simulation.client import TIMESTAMP
from tests.simulation.coordination import group_oracle, txn_log, txn_oracle
from tests.simulation.coordination.decisions import Decision, audit, decisions, is_stuttered
from tests.simulation.coordination.drawn import INPUT, SHARE, drawn
from tests.simulation.coordination.told import Commit, Look, StableEnd, Start, Told, Transaction
from tests.simulation.coordination.txn_log import TxnLog
from tests.simulation.ledger import Entry

KEY, OTHER = (INPUT, 0), (INPUT, 1)
GROUP = "g"
PRODUCER = (7, 0)


class Log:
    """A log that grows batch by batch."""

    def __init__(self) -> None:
        self._bytes = b""
        self._end = 0

    def data(self, *values: bytes, epoch: int = 0, **fields: bytes) -> Log:
        """A transactional batch of producer 7; ``key`` is that of its records."""
        records = [NewRecord(TIMESTAMP, fields.get("key"), value) for value in values]
        return self._add(
            build_batch(
                records, base_offset=self._end, leader_epoch=0, producer_id=7, producer_epoch=epoch, base_sequence=0,
                transactional=True,
            ),
            len(values),
        )  # fmt: skip

    def plain(self, key: bytes, value: bytes | None) -> Log:
        """A record outside of transactions."""
        return self._add(build_batch([NewRecord(TIMESTAMP, key, value)], base_offset=self._end, leader_epoch=0), 1)

    def commit(self, epoch: int = 0) -> Log:
        return self._marker(ControlRecordType.COMMIT, epoch)

    def abort(self, epoch: int = 0) -> Log:
        return self._marker(ControlRecordType.ABORT, epoch)

    def _marker(self, kind: ControlRecordType, epoch: int) -> Log:
        marker = EndTransactionMarker(kind, 0)
        made = build_marker_batch(
            marker, producer_id=7, producer_epoch=epoch, timestamp=TIMESTAMP, base_offset=self._end, leader_epoch=0
        )
        return self._add(made, 1)

    def _add(self, batch: bytes, count: int) -> Log:
        self._bytes += batch
        self._end += count
        return self

    def read(self) -> TxnLog:
        return txn_log.read(self._bytes)


def names(findings: list[tuple[str, str]]) -> set[str]:
    return {name for name, _ in findings}


def told_of(is_committed: bool | None, life: int = 0, **facts: object) -> Told:
    """One transaction of two records, in two partitions."""
    told = Told(fences={"id": [0.0, 5.0]})
    told.transactions.append(Transaction("id", life, "id/1", {b"a": KEY, b"b": OTHER}, is_committed=is_committed))
    for name, value in facts.items():
        setattr(told.transactions[0], name, value)
    return told


def whole(is_committed: bool) -> dict[tuple[str, int], TxnLog]:
    logs = {KEY: Log().data(b"a"), OTHER: Log().data(b"b")}
    return {key: (log.commit() if is_committed else log.abort()).read() for key, log in logs.items()}


TORN = {KEY: Log().data(b"a").commit().read(), OTHER: Log().data(b"b").abort().read()}
OPEN = {KEY: Log().data(b"a").commit().read(), OTHER: Log().data(b"b").read()}
TWICE = {KEY: Log().data(b"a").data(b"a").commit().read(), OTHER: Log().data(b"b").commit().read()}
BACK = {KEY: Log().data(b"a", epoch=1).data(b"c", epoch=0).commit(1).read(), OTHER: Log().data(b"b").commit().read()}


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_is_what_was_told(is_committed: bool) -> None:
    """Committed in all partitions or in none; who does not know finds either."""
    logs = whole(is_committed)
    assert txn_oracle.judge(told_of(is_committed), logs, {}) == []
    assert txn_oracle.judge(told_of(None), logs, {}) == []
    assert names(txn_oracle.judge(told_of(not is_committed), logs, {})) == {"G1a" if is_committed else "lost-write"}


@pytest.mark.parametrize(
    ("logs", "found"),
    [
        (TORN, {"torn-transaction"}),
        (OPEN, {"torn-transaction", "hanging-transaction"}),
        (TWICE, {"duplicate"}),
        (BACK, {"producer-epoch-regression", "phantom"}),
    ],
    ids=["torn", "open", "twice", "epochs"],
)
def test_what_is_wrong_with_a_transaction_is_named(logs: dict[tuple[str, int], TxnLog], found: set[str]) -> None:
    """Whoever knows nothing of its outcome sees as much."""
    assert names(txn_oracle.judge(told_of(None), logs, {})) == found


def test_what_was_acknowledged_stands_there() -> None:
    """Also in a transaction that is aborted."""
    assert txn_oracle.judge(told_of(False, acknowledged={b"a": 0, b"b": 0}), whole(False), {}) == []
    assert names(txn_oracle.judge(told_of(None, acknowledged={b"a": 1}), whole(True), {})) == {"inconsistent-offsets"}
    lacks = {KEY: Log().read(), OTHER: Log().read()}
    assert names(txn_oracle.judge(told_of(None, acknowledged={b"a": 0}), lacks, {})) == {"lost-write"}


def test_a_fenced_producer_writes_nothing() -> None:
    """What was appended before the next one had the id is no zombie's."""
    for appended_s, found in ((4.9, set()), (5.1, {"zombie-write"})):
        assert names(txn_oracle.judge(told_of(None), whole(False), {(KEY, 0, 0): appended_s})) == found
    assert txn_oracle.judge(told_of(None, life=1), whole(False), {(KEY, 0, 0): 5.1}) == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([(2, b"b")], set()),
        ([(0, b"a"), (2, b"b")], {"G1a"}),
        ([], {"poll-skip"}),
        ([(2, b"b"), (2, b"b")], {"nonmonotonic-poll"}),
    ],
    ids=["right", "aborted", "skipped", "again"],
)
def test_a_reader_is_given_what_is_committed(given: list[tuple[int, bytes]], found: set[str]) -> None:
    """All of it, in order, once, and nothing else."""
    told = Told(fences={"id": [0.0]})
    told.transactions += [
        Transaction("id", 0, "1", {b"a": KEY}, is_committed=False),
        Transaction("id", 0, "2", {b"b": KEY}, is_committed=True),
    ]
    told.read[KEY] = [[(offset, value, 0) for offset, value in given]]
    logs = {KEY: Log().data(b"a").abort().data(b"b").commit().read()}
    assert names(txn_oracle.judge(told, logs, {})) == found


@pytest.mark.parametrize(("offset", "found"), [(0, set()), (1, {"precommitted-read"})])
def test_nothing_is_stable_before_its_program_commits(offset: int, found: set[str]) -> None:
    """The stable end is at most where the transaction begins."""
    told = told_of(True, ending_s=3.0)
    told.ends += [StableEnd(KEY, 2.0, offset), StableEnd(KEY, 3.5, 2)]
    assert names(txn_oracle.judge(told, whole(True), {})) == found


@pytest.mark.parametrize(
    ("found", "due", "is_right"),
    [
        ("C", "C", True), ("CC", "C", True), ("", "", True), ("CA", "CA", True), ("CCA", "CA", True),
        ("CC", "CC", True), ("", "C", False), ("C", "CC", False), ("A", "C", False), ("C", "", False),
        ("CAC", "CA", False), ("AC", "CA", False),
    ],
)  # fmt: skip
def test_each_decision_has_its_marker(found: str, due: str, is_right: bool) -> None:
    """Once, or again in a row; in the order of the decisions; none that nobody decided."""
    assert is_stuttered([each == "C" for each in found], [each == "C" for each in due]) is is_right


def test_a_marker_that_is_missing_is_named() -> None:
    """The oracle names the partition that lacks a marker."""
    decided = [Decision("id", PRODUCER, True, frozenset({KEY, OTHER}))]
    assert audit(decided, whole(True)) == []
    assert audit(decided, OPEN) == [
        ("marker-audit", "x-1: producer 7 epoch 0 has the markers nothing where C were decided")
    ]


def decided(*states: TransactionState) -> dict[int, Entry]:
    """What a coordinator stored of one transactional id."""
    found = {}
    for offset, state in enumerate(states):
        partitions = frozenset({KEY}) if state in (*PREPARED, TransactionState.ONGOING) else frozenset()
        transit = TransitMetadata(7, -1, 0, -1, 1000, state, partitions, 1, 1)
        found[offset] = Entry(encode_key("id"), encode_value(transit) or b"")
    return found


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        ("ONGOING PREPARE_COMMIT COMPLETE_COMMIT ONGOING PREPARE_COMMIT COMPLETE_COMMIT", [True, True]),
        ("ONGOING PREPARE_COMMIT PREPARE_ABORT COMPLETE_ABORT", [False]),
        ("ONGOING PREPARE_COMMIT PREPARE_COMMIT COMPLETE_COMMIT ONGOING PREPARE_ABORT", [True, False]),
        # Equal to one that was completed long before: it is the later one that does not count.
        (
            "PREPARE_COMMIT COMPLETE_COMMIT PREPARE_ABORT COMPLETE_ABORT PREPARE_COMMIT PREPARE_COMMIT COMPLETE_COMMIT",
            [True, False, True],
        ),
    ],
    ids=["two", "given-up", "again", "as-before"],
)
def test_of_decisions_in_a_row_the_last_counts(states: str, kinds: list[bool]) -> None:
    """The append of one before it was abandoned, and no marker was sent for it."""
    history = decided(*(TransactionState[each] for each in states.split()))
    assert [each.is_commit for each in decisions(history)] == kinds


# Groups


def committing(*places: tuple[int, str | None]) -> TxnLog:
    """What a group commits for the first partition, outside of transactions; a tag of None is a tombstone."""
    log, key = Log(), offset_key(GROUP, *KEY)
    for offset, tag in places:
        log.plain(key, None if tag is None else offset_value(CommittedOffset(offset, tag, TIMESTAMP)))
    return log.read()


def judged(told: Told, log: TxnLog) -> set[str]:
    counted = group_oracle.commits([log])
    inputs = {KEY: Log().data(b"a", b"b", b"c").commit().read()}
    return names(group_oracle.judge(told, counted, inputs))


def given(*offsets: int) -> Told:
    """A group some of whose commits were acknowledged, and which was given these."""
    told = Told()
    told.delivered[GROUP, KEY] = {offset: b"abc"[offset : offset + 1] for offset in offsets}
    return told


def test_a_commit_that_was_acknowledged_counts() -> None:
    """And one that was refused does not, and none is removed."""
    told = given(0)
    told.commits.append(Commit(GROUP, "1", {KEY: 1}, is_stored=True, told_s=1.0))
    assert judged(told, committing((1, "1"))) == set()
    assert judged(told, committing()) == {"lost-commit"}
    assert judged(told, committing((1, "1"), (-1, None))) >= {"lost-commit"}
    told.commits[0].is_stored = False
    assert judged(told, committing()) == set()
    assert judged(told, committing((1, "1"))) == {"G1a"}


@pytest.mark.parametrize(
    ("asked_s", "tag", "found"),
    [
        (0.5, None, set()), (0.5, "1", set()), (1.5, "1", set()), (1.5, "2", set()),
        (1.5, None, {"offset-regression"}), (2.5, "1", {"offset-regression"}), (2.5, "9", {"lost-commit"}),
    ],
)  # fmt: skip
def test_what_a_coordinator_names_never_goes_back(asked_s: float, tag: str | None, found: set[str]) -> None:
    """It is what was acknowledged last, or later."""
    told = given(0, 1)
    told.commits.append(Commit(GROUP, "1", {KEY: 1}, is_stored=True, told_s=1.0))
    told.commits.append(Commit(GROUP, "2", {KEY: 2}, is_stored=True, told_s=2.0))
    told.looks.append(Look(GROUP, KEY, asked_s, asked_s + 0.1, tag))
    assert judged(told, committing((1, "1"), (2, "2"))) == found


def test_what_one_look_told_another_tells_too() -> None:
    """Although nobody was told that it is stored."""
    told = given(0, 1)
    told.looks += [Look(GROUP, KEY, 1.0, 1.1, "2"), Look(GROUP, KEY, 1.2, 1.3, "1")]
    assert judged(told, committing((1, "1"), (2, "2"))) == {"offset-regression"}
    told.looks[1] = Look(GROUP, KEY, 1.05, 1.3, "1")
    assert judged(told, committing((1, "1"), (2, "2"))) == set()


@pytest.mark.parametrize(("offset", "found"), [(0, {"offset-regression"}), (1, set()), (2, set())])
def test_a_member_begins_where_the_group_is(offset: int, found: set[str]) -> None:
    """Not before what was acknowledged before it was assigned the partition."""
    told = given(0, 1, 2)
    told.commits.append(Commit(GROUP, "1", {KEY: 1}, is_stored=True, told_s=1.0))
    told.starts.append(Start(GROUP, KEY, 1.5, offset))
    assert judged(told, committing((1, "1"))) == found


def test_what_is_committed_was_delivered() -> None:
    """Each record below; an aborted one to nobody who reads committed records."""
    assert judged(given(0, 1), committing((2, "1"))) == set()
    assert judged(given(1), committing((2, "1"))) == {"poll-skip"}
    told = given(0)
    told.only_committed.add(GROUP)
    inputs = {KEY: Log().data(b"a").abort().read()}
    assert names(group_oracle.judge(told, group_oracle.commits([committing((1, "1"))]), inputs)) == {"G1a"}


@pytest.mark.parametrize(
    ("copied", "found"),
    [
        ([0, 1], set()),
        ([0, 1, 1], {"duplicate"}),
        ([0], {"lost-write"}),
        ([0, 1, 2], {"duplicate"}),
        ([0, 1, 9], {"phantom"}),
    ],
)
def test_each_record_is_copied_once(copied: list[int], found: set[str]) -> None:
    """Up to where the group has committed, and nothing beyond it."""
    outputs = Log().data(*(b"%s-0@%d of x" % (INPUT.encode(), offset) for offset in copied)).commit().read()
    inputs = {KEY: Log().data(b"a", b"b", b"c").commit().read()}
    counted = group_oracle.commits([committing((2, "1"))])
    assert names(group_oracle.copies(GROUP, counted, inputs, [outputs])) == found


def test_offsets_of_a_transaction_count_from_its_marker_on() -> None:
    """And not at all if it is aborted."""
    value, key = offset_value(CommittedOffset(5, "t", TIMESTAMP)), offset_key(GROUP, *KEY)
    for log, tags in ((Log().data(value, key=key).commit(), ["t"]), (Log().data(value, key=key).abort(), [])):
        counted = group_oracle.commits([log.read()])
        assert [each.tag for each in counted.get((GROUP, KEY), [])] == tags


def test_a_share_of_the_seeds_has_them() -> None:
    """None in which an unclean election may take away anything."""
    share = sum(drawn(seed, is_unclean=False) is not None for seed in range(400)) / 400
    assert abs(share - SHARE) < 0.06
    assert all(drawn(seed, is_unclean=True) is None for seed in range(100))
