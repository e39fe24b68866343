"""The oracle of the simulations: each finding has a small history that shows it, and a right history shows none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.paths import state_path
from cluster.metadata.store import Create, SetData
from cluster.metadata.znodes import StateNode
from cluster.protocol.batch import set_offset_and_epoch
from tests.simulation.client import batch
from tests.simulation.observer import StateObserver
from tests.simulation.oracle import Evidence, judge

PRODUCER = 7
VALUES = (b"a", b"b", b"c")


def log(*batches: tuple[bytes, int, int, int]) -> bytes:
    """(value, offset, leader epoch, sequence) of each batch."""
    data = b""
    for value, offset, epoch, sequence in batches:
        placed = bytearray(batch(value, producer_id=PRODUCER, base_sequence=sequence))
        set_offset_and_epoch(placed, 0, offset, epoch)
        data += placed
    return data


RIGHT = log((b"a", 0, 0, 0), (b"b", 1, 0, 1), (b"c", 2, 1, 2))


def right() -> Evidence:
    return Evidence(
        "t-0",
        sent=set(VALUES),
        acknowledged={b"a": 0, b"b": 1, b"c": -1},
        read=[[(0, b"a"), (1, b"b")]],
        logs={1: RIGHT, 2: RIGHT, 3: RIGHT},
        leaders={0: {1}, 1: {2}},
    )


def everywhere(data: bytes) -> Evidence:
    return replace(right(), logs=dict.fromkeys((1, 2, 3), data))


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
    "epoch-regression": lambda: everywhere(log((b"a", 0, 1, 0), (b"b", 1, 1, 1), (b"c", 2, 0, 2))),
    "read-then-lost": lambda: replace(right(), read=[[(0, b"a"), (1, b"x")]]),
    "poll-skip": lambda: replace(right(), read=[[(0, b"a"), (2, b"c")]]),
    "split-brain": lambda: replace(right(), leaders={0: {1, 2}}),
}


def test_a_right_history_shows_nothing() -> None:
    """No false alarm; an acknowledgement without an offset is one all the same."""
    assert judge(right()) == []


@pytest.mark.parametrize("name", sorted(WRONG))
def test_each_wrong_is_found_by_its_name(name: str) -> None:
    """One planted wrong, one finding of that name at least."""
    assert name in {found for found, _ in judge(WRONG[name]())}


def test_what_controllers_write_is_watched() -> None:
    """A leader epoch that falls, and one that is given to two brokers, are found when they are written."""
    tree, found = MemoryTree(), []
    StateObserver(tree, lambda name, text: found.append(name))
    path = ""
    for part in ("brokers", "topics", "t", "partitions", "0"):
        path += f"/{part}"
        tree.create(0, Create(path))
    for leader, leader_epoch in ((1, 0), (1, 0), (2, 1)):
        write(tree, leader, leader_epoch)
    assert found == []
    write(tree, 3, 1)
    assert found == ["split-brain"]
    write(tree, 1, 0)
    assert found == ["split-brain", "epoch-regression"]


def write(tree: MemoryTree, leader: int, leader_epoch: int) -> None:
    path = state_path("t", 0)
    data = StateNode(leader, leader_epoch, (1, 2, 3), 1).encode()
    tree.multi(0, [Create(path, data) if tree.exists(path) is None else SetData(path, data)])
