"""How transactions ended, for compaction: what is aborted, and what is not decided yet."""

from __future__ import annotations

from cluster.log.outcomes import TransactionOutcomes
from cluster.log.transactions import marker_in
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.protocol.control_records import ControlRecordType
from cluster.protocol.records import NewRecord, build_batch
from tests.cluster.log.builders import make_marker

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def written(offset: int, producer_id: int = 1, *, transactional: bool = True) -> BatchHeader:
    """The header of a producer's batch."""
    return parse_header(
        build_batch(
            [NewRecord(0, b"k", b"v")],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=transactional,
        )
    )


def end(outcomes: TransactionOutcomes, offset: int, how: ControlRecordType, producer_id: int = 1) -> None:
    marker = make_marker(producer_id, how)
    outcomes.note(parse_header(marker)._replace(base_offset=offset), marker_in(marker))


def test_each_transaction_of_a_producer_has_its_own_end():
    """Batches are aborted that lie between the first one and the marker of an aborted transaction."""
    outcomes = TransactionOutcomes(10)
    ends = {2: ABORT, 5: COMMIT, 8: ABORT}
    for offset in range(9):
        if offset in ends:
            end(outcomes, offset, ends[offset])
        else:
            outcomes.note(written(offset), None)
    assert [offset for offset in range(9) if outcomes.is_aborted(written(offset))] == [0, 1, 6, 7]
    assert outcomes.undecided_from is None
    assert not outcomes.is_aborted(written(0, producer_id=2))
    assert not outcomes.is_aborted(written(0, transactional=False))


def test_what_has_no_marker_is_not_decided():
    """The first of these transactions counts; a marker of nothing ends nothing."""
    outcomes = TransactionOutcomes(10)
    end(outcomes, 0, ABORT)
    outcomes.note(written(1), None)
    outcomes.note(written(2, producer_id=2), None)
    outcomes.note(written(3), None)
    assert outcomes.undecided_from == 1
    end(outcomes, 4, COMMIT)
    assert outcomes.undecided_from == 2
    assert not any(outcomes.is_aborted(written(offset)) for offset in range(4))


def test_as_many_are_remembered_as_there_is_room_for():
    """More are left to the next compaction."""
    outcomes = TransactionOutcomes(2)
    for offset in (0, 2):
        assert not outcomes.is_full
        outcomes.note(written(offset), None)
        end(outcomes, offset + 1, ABORT)
    assert outcomes.is_full
