"""What a compacted log must have kept: each wrong is found, and what compaction may do is not."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.protocol.batch import iter_batches, set_offset_and_epoch
from cluster.protocol.records import NewRecord, decode_records
from cluster.protocol.rewriting import rebuild_batch
from tests.simulation.client import batch
from tests.simulation.evidence import Evidence
from tests.simulation.kept import Kept, compacted_replicas_differ
from tests.simulation.ledger import TOMBSTONE, Appended, Entry, Ledger, entries_of
from tests.simulation.oracle import judge

PRODUCER = 7
#: What was written: x, y, x again, y's tombstone, x once more.
HISTORY = {
    0: Entry(b"x", b"a"),
    1: Entry(b"y", b"b"),
    2: Entry(b"x", b"c"),
    3: Entry(b"y", b"d", True),
    4: Entry(b"x", b"e"),
}
END = 5


def wrongs(*offsets: int, tombstones_go: bool = False, **changes: Entry) -> list[str]:
    """What is found in a log that has kept these offsets alone; ``changes`` are other records at ``at_N``."""
    records = {offset: HISTORY[offset] for offset in offsets}
    records |= {int(name.removeprefix("at_")): entry for name, entry in changes.items()}
    return [name for name, _ in Kept(HISTORY, tombstones_go=tombstones_go).missing(records, 0, END)]


@pytest.mark.parametrize("offsets", [(0, 1, 2, 3, 4), (2, 3, 4), (3, 4), (0, 3, 4)])
def test_what_is_superseded_may_be_gone(offsets: tuple[int, ...]) -> None:
    """Compaction may remove all superseded records, or some, or none."""
    assert wrongs(*offsets) == []


def test_the_newest_of_each_key_stays() -> None:
    """And a tombstone until its time has come."""
    assert wrongs(0, 1, 2, 3) == ["compacted-away"]
    assert wrongs(4) == ["compacted-away"] * 2
    assert wrongs(4, tombstones_go=True) == []
    assert wrongs(3, tombstones_go=True) == ["compacted-away"] * 3
    assert wrongs(0, 1, 2, 4) == ["compacted-away"]


def test_offsets_keep_their_records() -> None:
    """Compaction moves no record to another offset and adds none."""
    assert "phantom" in wrongs(3, 4, at_2=Entry(b"x", b"a"))
    assert wrongs(0, 1, 2, 3, 4, at_5=Entry(b"x", b"f")) == ["phantom"]


def test_nothing_is_missing_that_nobody_put_there() -> None:
    """A hole in what was appended is no compaction."""
    history = {offset: entry for offset, entry in HISTORY.items() if offset != 2}
    assert [name for name, _ in Kept(history, tombstones_go=False).missing(history, 0, END)] == ["log-gap"]
    keyless = {0: Entry(None, b"a"), 1: Entry(None, b"b")}
    assert [name for name, _ in Kept(keyless, tombstones_go=False).missing({1: keyless[1]}, 0, 2)] == ["compacted-away"]


def test_a_reader_is_given_the_newest_of_each_key() -> None:
    """What it skips was superseded later."""
    kept = Kept(HISTORY, tombstones_go=False)
    assert kept.may_be_skipped(0, 3)
    assert not kept.may_be_skipped(0, 4)
    assert Kept(HISTORY, tombstones_go=True).may_be_skipped(0, 4)
    assert not kept.may_be_skipped(4, 5)
    assert not kept.may_be_skipped(5, 6)


def test_replicas_agree_where_both_have_something() -> None:
    """Each is compacted when it likes."""
    one = {offset: HISTORY[offset] for offset in (0, 3, 4)}
    assert compacted_replicas_differ({1: HISTORY, 2: one, 3: HISTORY}) == []
    other = {**one, 4: Entry(b"x", b"f")}
    assert [name for name, _ in compacted_replicas_differ({1: HISTORY, 2: one, 3: other})] == ["log-divergence"]


# Through the oracle


def written() -> tuple[Ledger, bytes]:
    """The history in batches of one record, and of two at the end."""
    ledger, data = Ledger(leaders={0: {1}}), b""
    for offsets in ((0,), (1,), (2,), (3, 4)):
        placed = bytearray(batch(*map(record, offsets), producer_id=PRODUCER, base_sequence=offsets[0]))
        set_offset_and_epoch(placed, 0, offsets[0], 0)
        ledger.append((PRODUCER, 0, offsets[0]), Appended(offsets[0], 0, len(offsets), 0, entries_of(placed)))
        data += placed
    return ledger, data


def record(offset: int) -> NewRecord:
    entry = HISTORY[offset]
    if entry.is_tombstone:
        return NewRecord(1, entry.key, None, [(TOMBSTONE, entry.value)])
    return NewRecord(1, entry.key, entry.value)


def compacted(data: bytes, *offsets: int) -> bytes:
    """The log with these offsets alone."""
    kept = b""
    for position, header in iter_batches(data):
        records = decode_records(data[position : position + header.size_bytes])
        staying = [each for each in records if each.offset in offsets]
        if staying:
            kept += rebuild_batch(header, staying, None)
    return kept


def evidence(*logs: bytes, **changes: Any) -> Evidence:
    found = {
        "sent": {entry.value for entry in HISTORY.values()},
        "acknowledged": {entry.value: offset for offset, entry in HISTORY.items()},
        "read": [[(2, b"c", 0), (3, b"d", 0), (4, b"e", 0)]],
        "logs": dict(enumerate(logs, 1)),
        "starts": dict.fromkeys(range(1, len(logs) + 1), 0),
        "ledger": written()[0],
        "is_compacted": True,
        **changes,
    }
    return Evidence("t-0", **found)


def test_a_log_that_was_compacted_is_right() -> None:
    """Acknowledged, read and superseded: neither lost nor a hole, with sequences and offsets that rise."""
    _, data = written()
    assert judge(evidence(data, compacted(data, 2, 3, 4), compacted(data, 3, 4))) == []


def test_a_log_that_lost_its_newest_is_found() -> None:
    """Also by the reader that is given nothing of a key; and where nothing may be compacted, any hole."""
    _, data = written()
    assert "compacted-away" in {name for name, _ in judge(evidence(compacted(data, 0, 1, 2, 3)))}
    assert "poll-skip" in {name for name, _ in judge(evidence(data, read=[[(0, b"a", 0), (4, b"e", 0)]]))}
    found = {name for name, _ in judge(evidence(compacted(data, 2, 3, 4), is_compacted=False))}
    assert {"log-gap", "lost-write"} <= found


def test_order_holds_in_a_compacted_log() -> None:
    """Offsets and sequences rise, whatever is gone."""
    _, data = written()
    swapped = compacted(data, 2) + compacted(data, 1) + compacted(data, 3, 4)
    assert {"log-gap", "log-reorder"} <= {name for name, _ in judge(evidence(swapped))}


def test_a_later_epoch_need_not_count() -> None:
    """Its leader committed nothing, and who held the former's records was in sync, and was elected: they stand."""
    ledger, data = written()
    beside = Entry(b"x", b"f")
    ledger.append((PRODUCER, 1, 0), Appended(4, 1, 1, 0, (beside,)))
    of_both = {"sent": {entry.value for entry in (*HISTORY.values(), beside)}, "ledger": ledger}
    assert "phantom" in {name for name, _ in judge(evidence(data, **of_both))}
    ledger.descends([(0, 0), (2, END)])
    assert judge(evidence(data, compacted(data, 3, 4), **of_both)) == []
    lost = judge(evidence(data, acknowledged={b"f": 4}, **of_both))
    assert "lost-write" in {name for name, _ in lost}


def test_a_copy_after_compaction_does_not_know_where_an_epoch_began() -> None:
    """Its first batch of that epoch stands higher: what the former epoch's leader failed to write there stays nothing,
    and what was written there was not lost (seed 400766).
    """
    ledger = Ledger()
    ledger.append((PRODUCER, 0, 0), Appended(5, 0, 1, 0, (Entry(b"x", b"failed"),)))
    ledger.append((PRODUCER, 0, 1), Appended(5, 2, 1, 0, (Entry(b"y", b"stands"),)))
    ledger.descends([(0, 0), (2, 5)])
    ledger.descends([(0, 0), (2, 162), (3, 287)])
    assert ledger.lineage == ((0, 0), (2, 5), (3, 287))
    assert ledger.history(6)[5].value == b"stands"
