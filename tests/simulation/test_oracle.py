"""The oracle of the simulations: each finding has a small history that shows it, and a right history shows none.

What is asked of compacted logs has ``test_kept.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.paths import state_path
from cluster.metadata.store import Create, Delete, SetData
from cluster.metadata.znodes import StateNode
from cluster.protocol.batch import set_offset_and_epoch
from tests.simulation.client import batch
from tests.simulation.evidence import Evidence
from tests.simulation.ledger import Appended, Cut, Entry, Ledger, held
from tests.simulation.observer import StateObserver
from tests.simulation.oracle import judge

PRODUCER = 7
VALUES = (b"a", b"b", b"c")


def log(*batches: tuple[bytes, int, int, int], producer_epoch: int = 0) -> bytes:
    """(value, offset, leader epoch, sequence) of each batch."""
    data = b""
    for value, offset, epoch, sequence in batches:
        placed = bytearray(batch(value, producer_id=PRODUCER, producer_epoch=producer_epoch, base_sequence=sequence))
        set_offset_and_epoch(placed, 0, offset, epoch)
        data += placed
    return data


RIGHT = log((b"a", 0, 0, 0), (b"b", 1, 0, 1), (b"c", 2, 1, 2))


def ledger(*cuts: Cut, log_start: int = 0) -> Ledger:
    """Leaders appended a and b in epoch 0 and c in epoch 1."""
    found = Ledger(cuts=list(cuts), leaders={0: {1}, 1: {2}})
    for number, (value, epoch) in enumerate(zip(VALUES, (0, 0, 1), strict=True)):
        entries = (Entry(None, value),)
        found.append((PRODUCER, 0, number), Appended(number, epoch, 1, log_start if epoch else 0, entries))
    return found


def right() -> Evidence:
    return Evidence(
        "t-0",
        sent=set(VALUES),
        acknowledged={b"a": 0, b"b": 1, b"c": -1},
        read=[[(0, b"a", 0), (1, b"b", 0)]],
        logs={1: RIGHT, 2: RIGHT, 3: RIGHT},
        starts={1: 0, 2: 0, 3: 0},
        ledger=ledger(),
    )


def everywhere(data: bytes, **changes: Any) -> Evidence:
    return replace(right(), logs=dict.fromkeys((1, 2, 3), data), **changes)


def beginning_at(start: int, data: bytes, **changes: Any) -> Evidence:
    return everywhere(data, starts=dict.fromkeys((1, 2, 3), start), **changes)


def cut_off(*, epoch: int, kept: bytes) -> Ledger:
    """An unclean election in ``epoch``, whose leader held ``kept``."""
    return ledger(Cut(epoch, held(kept)))


A, AB = log((b"a", 0, 0, 0)), log((b"a", 0, 0, 0), (b"b", 1, 0, 1))
C_ALONE = log((b"c", 2, 1, 2))


#: name of the finding -> a history with it
WRONG: dict[str, Callable[[], Evidence]] = {
    "lost-write": lambda: everywhere(log((b"a", 0, 0, 0), (b"b", 1, 0, 1))),
    "inconsistent-offsets": lambda: replace(right(), acknowledged={b"a": 1}),
    "duplicate": lambda: everywhere(RIGHT + log((b"a", 3, 1, 3))),
    "phantom": lambda: replace(right(), sent={b"a", b"b"}, acknowledged={}),
    "log-divergence": lambda: replace(
        right(), logs={1: RIGHT, 2: log((b"a", 0, 0, 0), (b"b", 1, 0, 1), (b"c", 2, 2, 2))}
    ),
    "log-gap": lambda: everywhere(log((b"a", 0, 0, 0), (b"b", 1, 0, 1), (b"c", 3, 1, 2))),
    "log-reorder": lambda: everywhere(log((b"a", 0, 0, 0), (b"b", 1, 0, 1), (b"c", 2, 1, 1))),
    "sequence-gap": lambda: everywhere(log((b"a", 0, 0, 0), (b"b", 1, 0, 1), (b"c", 2, 1, 3))),
    "G1a": lambda: replace(right(), refused={b"c": "INVALID_RECORD"}),
    "nonmonotonic-send": lambda: replace(right(), streams=[[b"a", b"c", b"b"]]),
    "epoch-regression": lambda: everywhere(log((b"a", 0, 1, 0), (b"b", 1, 1, 1), (b"c", 2, 0, 2))),
    "read-then-lost": lambda: replace(right(), read=[[(0, b"a", 0), (1, b"x", 0)]]),
    "poll-skip": lambda: replace(right(), read=[[(0, b"a", 0), (2, b"c", 1)]]),
    "split-brain": lambda: replace(right(), ledger=replace(ledger(), leaders={0: {1, 2}})),
}


def test_a_right_history_shows_nothing() -> None:
    """No false alarm; an acknowledgement without an offset is one all the same."""
    assert judge(right()) == []


def test_a_producer_may_begin_again_under_a_later_epoch_alone() -> None:
    """Its sequences begin with 0 then; what comes under the epoch before is a ghost's."""
    begun = log((b"a", 0, 0, 0), (b"b", 1, 0, 1))
    assert judge(everywhere(begun + log((b"c", 2, 0, 0), producer_epoch=1))) == []
    for sequence, name in ((2, "sequence-gap"), (1, "sequence-gap")):
        assert {found for found, _ in judge(everywhere(begun + log((b"c", 2, 0, sequence), producer_epoch=1)))} == {
            name
        }
    ghost = log((b"a", 0, 0, 0)) + log((b"b", 1, 0, 0), producer_epoch=1) + log((b"c", 2, 0, 1))
    assert {found for found, _ in judge(everywhere(ghost))} == {"producer-epoch-regression"}


def test_what_a_producer_skipped_says_nothing_of_its_order() -> None:
    """A record that failed may be missing; one whose outcome is not known may stand."""
    sent = {*VALUES, b"d"}
    assert judge(replace(right(), sent=sent, refused={b"d": "X"}, streams=[[b"a", b"d", b"b", b"c"]])) == []


@pytest.mark.parametrize("name", sorted(WRONG))
def test_each_wrong_is_found_by_its_name(name: str) -> None:
    """One planted wrong, one finding of that name at least."""
    assert name in {found for found, _ in judge(WRONG[name]())}


#: What is excused is excused by what is known of the record alone: just beside it, each of these is found.
BESIDE: dict[str, tuple[str, Callable[[], Evidence]]] = {
    "nobody asked to delete": ("log-gap", lambda: beginning_at(2, C_ALONE)),
    "deleted more than was asked for": ("log-gap", lambda: beginning_at(2, C_ALONE, deleted=1)),
    "lost above what was deleted": ("lost-write", lambda: beginning_at(1, log((b"b", 1, 0, 1)), deleted=2)),
    "the start is missing": ("log-gap", lambda: beginning_at(1, C_ALONE, deleted=1)),
    "skipped more than was deleted": (
        "poll-skip",
        lambda: beginning_at(1, RIGHT, deleted=1, read=[[(0, b"a", 0), (2, b"c", 1)]]),
    ),
    "read what was never there, and is deleted now": (
        "read-then-lost",
        lambda: beginning_at(1, RIGHT, deleted=1, read=[[(0, b"c", 0)]]),
    ),
    "a producer that begins above what was deleted": (
        "sequence-gap",
        lambda: beginning_at(1, log((b"c", 1, 1, 2)), deleted=1),
    ),
    "lost in the unclean election's own epoch": (
        "lost-write",
        lambda: everywhere(AB, ledger=cut_off(epoch=1, kept=AB)),
    ),
    "lost, and the unclean leader held it": ("lost-write", lambda: everywhere(A, ledger=cut_off(epoch=2, kept=AB))),
    "acknowledged where nobody appended it": (
        "inconsistent-offsets",
        lambda: everywhere(AB, acknowledged={b"a": 2}, ledger=cut_off(epoch=2, kept=AB)),
    ),
    "read after the unclean election": (
        "read-then-lost",
        lambda: everywhere(
            AB, acknowledged={}, read=[[(0, b"a", 0), (1, b"b", 0), (2, b"c", 2)]], ledger=cut_off(epoch=2, kept=AB)
        ),
    ),
    "of a former topic": ("phantom", lambda: replace(right(), ledger=Ledger(leaders={0: {1}}))),
}


def test_what_was_deleted_on_request_is_excused() -> None:
    """Neither lost, nor skipped by a reader, and its producer goes on where it was; disks may still hold it."""
    evidence = beginning_at(2, C_ALONE, deleted=2, read=[[(0, b"a", 0), (2, b"c", 1)]])
    assert judge(evidence) == []
    assert judge(replace(evidence, logs={1: RIGHT, 2: C_ALONE, 3: RIGHT})) == []


def test_what_an_unclean_election_cut_off_is_excused() -> None:
    """What came before it, and its leader did not hold: acknowledged or read, it may be gone."""
    read = [[(0, b"a", 0), (1, b"b", 0), (2, b"c", 1)], [(0, b"a", 2), (1, b"b", 2)]]
    assert judge(everywhere(AB, read=read, ledger=cut_off(epoch=2, kept=AB))) == []


def test_who_read_nothing_of_a_former_topic_begins_again_too() -> None:
    """Once, when it hears that the topic was made again; in the first topic of a name nothing is read again."""
    former, now = ledger(), Ledger(leaders={0: {1}})
    now.append((PRODUCER, 1, 0), Appended(0, 0, 1, 0, (Entry(None, b"d"),)))
    late = [(0, b"d", 0), (0, b"d", 0)]
    remade = everywhere(
        log((b"d", 0, 0, 0), producer_epoch=1), sent={*VALUES, b"d"}, acknowledged={b"d": 0}, read=[late], ledger=now,
        former=[former], is_remade=True,
    )  # fmt: skip
    assert judge(remade) == []
    for changes in (
        {"read": [[*late, (0, b"d", 0)]]},
        {"read": [[(0, b"a", 0), (0, b"a", 0), (0, b"d", 0)]]},
        {"is_remade": False, "former": []},
    ):
        assert {name for name, _ in judge(replace(remade, **changes))} == {"poll-skip"}, changes


def test_what_retention_took_is_excused() -> None:
    """As what was deleted on request; ``retention.py`` judges whether it was right to."""
    read = [[(0, b"a", 0), (2, b"c", 1)]]
    assert judge(beginning_at(2, C_ALONE, read=read, ledger=replace(ledger(), retained=2))) == []
    found = judge(beginning_at(2, C_ALONE, read=read, ledger=replace(ledger(), retained=1)))
    assert {name for name, _ in found} == {"log-gap", "poll-skip"}


@pytest.mark.parametrize(("epoch", "names"), [(0, set()), (1, {"sequence-gap"})])
def test_a_batch_that_a_deposed_leader_had_further_up_is_gone(epoch: int, names: set[str]) -> None:
    """Before it was appended again, below the start by now: the log may begin with the producer's next one. But not if
    nobody of a later epoch appended there."""
    found = replace(ledger(), retained=2)
    found.append((PRODUCER, 0, 1), Appended(5, epoch, 1, 0, (Entry(None, b"b"),)))
    read = [[(0, b"a", 0), (2, b"c", 1)]]
    assert {name for name, _ in judge(beginning_at(2, C_ALONE, read=read, ledger=found))} == names


def test_what_a_former_topic_held_is_excused() -> None:
    """Acknowledged or read there, it need not be in the topic that was made again; a reader begins again there."""
    former = ledger()
    now = Ledger(leaders={0: {1}})
    now.append((PRODUCER, 1, 0), Appended(0, 0, 1, 0, (Entry(None, b"d"),)))
    now.append((PRODUCER, 1, 1), Appended(1, 0, 1, 0, (Entry(None, b"e"),)))
    log_now = log((b"d", 0, 0, 0), (b"e", 1, 0, 1), producer_epoch=1)
    sent, acknowledged = {*VALUES, b"d", b"e"}, {b"a": 0, b"b": 1, b"d": 0}
    read = [(0, b"a", 0), (1, b"b", 0), (0, b"d", 0), (1, b"e", 0)]
    remade = everywhere(log_now, sent=sent, acknowledged=acknowledged, read=[read], ledger=now, former=[former])
    assert judge(remade) == []
    former.append((PRODUCER, 1, 0), Appended(0, 0, 1, 0, (Entry(None, b"d"),)))
    assert judge(replace(remade, read=[[(0, b"d", 0), (1, b"e", 0)]])) == []
    assert judge(replace(remade, read=[[(0, b"d", 0), (1, b"b", 0), (0, b"d", 0), (1, b"e", 0)]])) == []
    # A consumer that has not heard of it yet goes on where it was, and begins again when it has.
    unaware = [(0, b"a", 0), (1, b"e", 0), (0, b"d", 0), (1, b"e", 0)]
    assert judge(replace(remade, read=[unaware])) == []
    assert {name for name, _ in judge(replace(remade, read=[[*unaware, (0, b"d", 0)]]))} == {"poll-skip"}
    for changes, name in (
        ({"former": []}, "lost-write"),
        ({"acknowledged": {b"a": 1}}, "lost-write"),
        ({"read": [[*read[:2], read[3]]]}, "poll-skip"),
        ({"read": [[read[1]]]}, "poll-skip"),
        ({"read": [[(0, b"c", 1)]]}, "read-then-lost"),
    ):
        assert name in {found for found, _ in judge(replace(remade, **changes))}, changes


def test_a_reader_goes_back_to_where_the_log_parts_from_what_it_read() -> None:
    """After an unclean election alone, and only past what that cut off."""
    cut = cut_off(epoch=2, kept=A)
    cut.append((PRODUCER, 1, 0), Appended(1, 2, 1, 0, (Entry(None, b"d"),)))
    data = A + log((b"d", 1, 2, 0), producer_epoch=1)
    before = [(0, b"a", 0), (1, b"b", 0), (2, b"c", 1)]
    evidence = everywhere(data, sent={*VALUES, b"d"}, ledger=cut)
    assert judge(replace(evidence, read=[[*before, (1, b"d", 2)]])) == []
    assert judge(replace(evidence, read=[[*before, (0, b"a", 0), (1, b"d", 2)]])) == []
    again = [(0, b"a", 0), (1, b"d", 2), (1, b"d", 2)]
    assert {name for name, _ in judge(replace(evidence, read=[again]))} == {"poll-skip"}
    # A leader elected after that one held what it had lost: the reader was right to go back.
    back = everywhere(RIGHT, ledger=cut_off(epoch=2, kept=A))
    assert judge(replace(back, read=[[*before, (1, b"b", 3), (2, b"c", 3)]])) == []
    assert {name for name, _ in judge(replace(back, read=[[*before, (1, b"b", 3), (1, b"b", 3)]]))} == {"poll-skip"}
    clean = replace(right(), read=[[(0, b"a", 0), (1, b"b", 0), (1, b"b", 0)]])
    assert {name for name, _ in judge(clean)} == {"poll-skip"}


def test_an_unclean_election_in_a_topic_that_was_made_again_is_no_third_topic() -> None:
    """A reader that goes back there need not begin at 0: it goes on where the log parts from what it read (seed
    403568). Where nothing was cut off, it goes back only because the topic was made again, and begins with all of it.
    """
    cut = cut_off(epoch=2, kept=A)
    cut.append((PRODUCER, 1, 0), Appended(1, 2, 1, 0, (Entry(None, b"d"),)))
    former = Ledger(leaders={0: {1}})
    former.append((PRODUCER, 2, 0), Appended(0, 0, 1, 0, (Entry(None, b"f"),)))
    remade = everywhere(
        A + log((b"d", 1, 2, 0), producer_epoch=1), sent={*VALUES, b"d", b"f"}, ledger=cut, former=[former],
        is_remade=True, read=[[(0, b"f", 0), (0, b"a", 0), (1, b"b", 0), (2, b"c", 1), (1, b"d", 2)]],
    )  # fmt: skip
    assert judge(remade) == []
    behind = [(0, b"f", 0), (0, b"a", 0), (1, b"d", 2), (1, b"d", 2)]
    assert {name for name, _ in judge(replace(remade, read=[behind]))} == {"poll-skip"}


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_what_is_not_excused(name: str) -> None:
    """The excuses reach no further than they say."""
    finding, evidence = BESIDE[name]
    assert finding in {found for found, _ in judge(evidence())}


def test_a_deleted_topic_begins_again() -> None:
    """Another topic of its name has its own leader epochs."""
    tree, found = MemoryTree(), []
    observer = StateObserver(tree, lambda name, text: found.append(name))
    make_partition(tree)
    write(tree, 1, 5)
    tree.multi(0, [Delete(state_path("t", 0))])
    write(tree, 2, 0)
    write(tree, 1, 1)
    assert found == []
    assert observer.unclean == {}


def test_an_unclean_election_is_known_by_its_leader() -> None:
    """Who was not in sync before, leads."""
    tree = MemoryTree()
    observer = StateObserver(tree, lambda name, text: None)
    make_partition(tree)
    for leader, leader_epoch, isr in ((1, 0, (1, 2)), (-1, 1, (1,)), (2, 2, (2,)), (2, 3, (2, 3)), (3, 4, (2, 3))):
        write(tree, leader, leader_epoch, isr)
    assert observer.unclean == {("t", 0): [(2, 2)]}
    assert observer.unclean_before(("t", 0), 1) == 0
    assert observer.unclean_before(("t", 0), 2) == 1


def test_a_deleted_topic_counts_on_nobody() -> None:
    """Who waits until a partition went on without a broker does not wait for one that was made again with it."""
    tree = MemoryTree()
    observer = StateObserver(tree, lambda name, text: None)
    make_partition(tree)
    write(tree, 1, 0)
    assert observer.written_without(("t", 0), 3) == 0
    write(tree, 1, 1, (1, 2))
    assert observer.written_without(("t", 0), 3) == 1
    tree.multi(0, [Delete(state_path("t", 0))])
    write(tree, 1, 0)
    assert observer.written_without(("t", 0), 3) == 2


def test_an_unclean_election_that_nobody_allowed_is_found() -> None:
    """What it cuts off would be excused: it is told by itself."""
    tree, found = MemoryTree(), []
    StateObserver(tree, lambda name, text: found.append((name, text)), unclean_allowed=False)
    make_partition(tree)
    write(tree, 1, 0, (1, 2))
    write(tree, 2, 1, (2,))
    assert found == []
    write(tree, 3, 2, (3,))
    assert found == [("unclean-election", "t-0: 3 leads epoch 2, in sync were (2,)")]


def test_what_controllers_write_is_watched() -> None:
    """A leader epoch that falls, and one that is given to two brokers, are found when they are written."""
    tree, found = MemoryTree(), []
    StateObserver(tree, lambda name, text: found.append(name))
    make_partition(tree)
    for leader, leader_epoch in ((1, 0), (1, 0), (2, 1)):
        write(tree, leader, leader_epoch)
    assert found == []
    write(tree, 3, 1)
    assert found == ["split-brain"]
    write(tree, 1, 0)
    assert found == ["split-brain", "epoch-regression"]


def make_partition(tree: MemoryTree) -> None:
    path = ""
    for part in ("brokers", "topics", "t", "partitions", "0"):
        path += f"/{part}"
        tree.create(0, Create(path))


def write(tree: MemoryTree, leader: int, leader_epoch: int, isr: tuple[int, ...] = (1, 2, 3)) -> None:
    path = state_path("t", 0)
    data = StateNode(leader, leader_epoch, isr, 1).encode()
    tree.multi(0, [Create(path, data) if tree.exists(path) is None else SetData(path, data)])
