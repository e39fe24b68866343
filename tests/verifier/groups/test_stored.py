"""What coordinators stored of a group's offsets: their bytes, and that what was acknowledged is among them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.support import offset_bytes
from tests.support.stories import Batch
from tests.support.transaction_bytes import marker
from tests.verifier.groups.test_groups import CASES, PLACE, Row, commit, member, polled, resume
from tests.verifier.oracle import groups as oracle
from verifier.checks.lost_offset_commit import lost_offset_commit
from verifier.evidence.run_directory import RunDirectory
from verifier.groups.group_checks import audit
from verifier.groups.model import GroupEvidence, StoredCommits
from verifier.groups.offset_records import OffsetRecord, offset_record
from verifier.groups.rows import group_partitions
from verifier.groups.stored import StoredOffsets, stored
from verifier.segments.markers import ABORT, COMMIT
from verifier.transactions.logs import keyed_log
from verifier.transactions.state_records import UnknownRecord


@pytest.mark.parametrize(
    ("log", "more", "wanted"),
    [
        (StoredCommits(frozenset({5, 10}), frozenset({10})), [], {}),
        (StoredCommits(frozenset({5}), frozenset({5})), [], {("lost-offset-commit", "missing"): 1}),
        (StoredCommits(), [], {("lost-offset-commit", "missing"): 2}),
        # what was compacted away is not missing; but the last one of a key stays
        (StoredCommits(frozenset({10}), frozenset({10}), is_whole=False), [], {}),
        (StoredCommits(frozenset({5}), frozenset({5}), is_whole=False), [], {("lost-offset-commit", "regressed"): 1}),
        (StoredCommits(is_whole=False), [], {}),
        (StoredCommits(frozenset({5, 10}), frozenset({5})), [], {("lost-offset-commit", "regressed"): 1}),
        # an open transaction may be the last; so may be a commit whose outcome is unknown, or one that overlaps
        (StoredCommits(frozenset({5, 10}), frozenset({5, 10})), [], {}),
        (StoredCommits(frozenset({5, 10}), frozenset({5})), [commit(1, 5, 2, 3, "info")], {}),
        (StoredCommits(frozenset({5, 10, 7}), frozenset({7})), [commit(1, 7, 4, 9)], {}),
        (StoredCommits(frozenset({5, 10, 7}), frozenset({5})), [commit(1, 7, 4, 9)],
         {("lost-offset-commit", "regressed"): 1}),
        # the last one was removed, or is beyond
        (StoredCommits(frozenset({5, 10}), frozenset()), [], {}),
        (StoredCommits(frozenset({5, 10, 15}), frozenset({15})), [], {}),
        (None, [], {}),
    ],
)  # fmt: skip
def test_what_was_committed_is_in_the_log(
    log: StoredCommits | None, more: list[Row], wanted: dict[tuple[str, str | None], int]
) -> None:
    """Every offset that was acknowledged, and as the last one what no later commit has overwritten."""
    rows = [member(1), resume(1, 0, 1, 2), polled(1, 0, 9), commit(1, 5, 1, 2), commit(1, 10, 5, 6), *more]
    partitions = group_partitions(rows, {}, is_whole=True, stored=lambda _: log)
    assert dict(Counter((each.check, each.cause) for each in audit(GroupEvidence(partitions)))) == wanted


@pytest.mark.parametrize(("later", "wanted"), [(2, {("lost-offset-commit", "regressed"): 1}), (1, {}), (-1, {})])
def test_what_an_earlier_generation_tried_is_not_the_last(
    later: int, wanted: dict[tuple[str, str | None], int]
) -> None:
    """It may be, unless a later one has committed."""
    rows = [member(1), commit(1, 5, 1, 2, "info", 1), commit(1, 10, 5, 6, generation=later)]
    log = StoredCommits(frozenset({5, 10}), frozenset({5}))
    partitions = group_partitions(rows, {}, is_whole=True, stored=lambda _: log)
    assert dict(Counter((each.check, each.cause) for each in audit(GroupEvidence(partitions)))) == wanted


def test_records_of_offsets_are_read() -> None:
    """Keys of version 0 and 1, values of version 0 to 3, groups, and what is removed; anything else is not known."""
    key, value = offset_bytes.offset_key("g", "t", 3), offset_bytes.offset_value(7)
    assert offset_record(key, value) == OffsetRecord("g", ("t", 3), 7)
    assert offset_record(b"\0\0" + key[2:], b"\0\1" + value[2:]) == OffsetRecord("g", ("t", 3), 7)
    assert offset_record(key, None) == OffsetRecord("g", ("t", 3), None)
    assert offset_record(offset_bytes.group_key("g"), b"whatever") == OffsetRecord("g", None, None)
    of_keys = [None, key[:-1], key + b"x", b"\0\3" + key[2:]]
    for wrong, its in [*((each, value) for each in of_keys), (key, b"\0\4"), (key, b"\0")]:
        with pytest.raises(UnknownRecord):
            offset_record(wrong, its)


def test_a_log_of_offsets_is_read(tmp_path: Path) -> None:
    """What counts by transactions; what cannot be read makes it less than whole; of other groups nothing is known."""
    batches = [
        offset_bytes.committed(0, "g", "t", 0, 5),
        offset_bytes.in_transaction(offset_bytes.committed(1, "g", "t", 0, 6), 9),
        marker(2, ABORT, 9),
        offset_bytes.committed(3, "g", "t", 0, 7, 8),
        offset_bytes.in_transaction(offset_bytes.committed(5, "g", "t", 0, 9), 9),
        Batch(6, (), keys=(offset_bytes.group_key("h"),), raw_values=(b"",)),
    ]

    def read(*some: Batch) -> StoredOffsets:
        for old in tmp_path.iterdir():
            old.unlink()
        (tmp_path / f"{0:020d}.log").write_bytes(b"".join(batch.encode() for batch in some))
        return stored([keyed_log(tmp_path)])

    found = read(*batches)
    assert found.of(("g", PLACE)) == StoredCommits(frozenset({5, 7, 8, 9}), frozenset({8, 9}))
    assert found.of(("h", PLACE)) == StoredCommits() and found.of(("unknown", PLACE)) is None
    removed = offset_bytes.committed(7, "g", "t", 0, None)
    assert read(*batches, removed).of(("g", PLACE)) == StoredCommits(frozenset({5, 7, 8, 9}))
    for damaged in (
        batches[1:],
        [*batches[:3], *batches[4:]],
        [replace(batches[0], spoil=lambda data: data[:-1] + b"x"), *batches[1:]],
        [*batches, Batch(7, (), keys=(b"\0\7",), raw_values=(b"",))],
    ):
        told = read(*damaged).of(("g", PLACE))
        assert told is not None and not told.is_whole


def test_a_group_of_which_there_is_nothing_is_judged_if_all_is_there(tmp_path: Path) -> None:
    """Every partition, each of them whole: no other place is left for what it committed."""
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(offset_bytes.committed(0, "g", "t", 0, 5).encode())
    whole = keyed_log(tmp_path)
    log.write_bytes(offset_bytes.committed(1, "g", "t", 0, 5).encode())
    cut = keyed_log(tmp_path)
    assert stored([whole], are_all=True).of(("h", PLACE)) == StoredCommits()
    assert stored([whole, cut], are_all=True).of(("h", PLACE)) is None
    assert stored([whole]).of(("h", PLACE)) is None


def drawn_log(random: Random) -> list[Batch]:
    """Offsets of two groups, in transactions of two producers and without, some removed; now and then with a hole."""
    log: list[Batch] = []
    for _ in range(random.randrange(1, 9)):
        base = log[-1].next_offset if log else 0
        if random.random() < 0.05:
            base += 1
        producer_id = random.choice([8, 9])
        if random.random() < 0.3:
            log.append(marker(base, random.choice([ABORT, COMMIT]), producer_id))
            continue
        offsets = [random.choice([None, *range(9), *range(9)]) for _ in range(random.randrange(1, 3))]
        batch = offset_bytes.committed(base, random.choice(["g", "g", "h"]), "t", 0, *offsets)
        log.append(offset_bytes.in_transaction(batch, producer_id) if random.random() < 0.4 else batch)
    return log


def test_random_logs_of_offsets_are_judged_as_by_the_oracle(tmp_path: Path) -> None:
    """Whatever was committed, whatever is in the log."""
    home = RunDirectory(tmp_path).node(1) / "data" / "__consumer_offsets-0"
    home.mkdir(parents=True)
    for seed in range(CASES):
        random = Random(seed)
        log = drawn_log(random)
        (home / f"{0:020d}.log").write_bytes(b"".join(batch.encode() for batch in log))
        there = [offset for offset in range(9) if random.random() < 0.5]
        rows = [member(1)]
        for offset in there:
            begin = random.randrange(30)
            kind = random.choice(["ok", "ok", "info", "fail"])
            rows.append(commit(1, offset, begin, begin + random.randrange(4), kind))
        partitions = group_partitions(rows, {}, is_whole=True, stored=stored([keyed_log(home)]).of)
        mine = [(each.cause, each.offset) for each in lost_offset_commit(GroupEvidence(partitions))]
        twin = [(each.cause, each.offset) for each in oracle.lost(rows, oracle.offset_logs(RunDirectory(tmp_path)))]
        assert sorted(mine) == sorted(twin), f"seed {seed}"
