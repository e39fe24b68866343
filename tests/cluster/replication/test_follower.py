"""What a follower makes of an answer, and where it cuts (Kafka's AbstractFetcherThread)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log.epochs import LeaderEpochCache
from cluster.protocol.errors import ErrorCode
from cluster.replication.follower import (
    FetchPosition,
    Reaction,
    Restart,
    initial_truncation,
    out_of_range_position,
    reaction,
    restart_within,
    truncation_offset,
)
from cluster.replication.leader_epochs import (
    check_leader_epoch,
    check_stop_replica,
    diverging_epoch,
)

HERE = FetchPosition(3, 10, 2)


@pytest.mark.parametrize(
    ("error", "diverges", "expected"),
    [
        (ErrorCode.NONE, False, Reaction.APPEND),
        (ErrorCode.NONE, True, Reaction.TRUNCATE),
        (ErrorCode.OFFSET_OUT_OF_RANGE, False, Reaction.OUT_OF_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, False, Reaction.PARK),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, False, Reaction.BACK_OFF),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, False, Reaction.BACK_OFF),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, Reaction.BACK_OFF),
        (ErrorCode.KAFKA_STORAGE_ERROR, False, Reaction.BACK_OFF),
    ],
)
def test_reactions(error: ErrorCode, diverges: bool, expected: Reaction) -> None:
    """Each only if the answer is for where we are now."""
    assert reaction(HERE, HERE, error, diverges=diverges) is expected
    for elsewhere in (FetchPosition(4, 10, 2), FetchPosition(3, 11, 2), FetchPosition(3, 10, 3)):
        assert reaction(HERE, elsewhere, error, diverges=diverges) is Reaction.IGNORE


def test_where_to_start() -> None:
    """With an epoch nothing is cut; without any the watermark is all there is to hold on to."""
    assert initial_truncation(5, 3, 10) == 10
    assert initial_truncation(None, 3, 10) == 3
    assert initial_truncation(None, 30, 10) == 10


@pytest.mark.parametrize(
    ("leader", "local", "expected"),
    [
        ((2, 8), (2, 10), 8),
        ((2, 12), (2, 9), 9),
        ((2, 30), (2, 30), 20),
        ((2, 15), (1, 7), 7),
        ((-1, 6), (2, 10), 6),
        ((2, 6), (-1, -1), 6),
        ((2, -1), (2, 10), 4),
    ],
    ids=[
        "the leader's is shorter", "ours is shorter", "never beyond our end", "we lack the epoch (KIP-279)",
        "the leader names no epoch", "we know no epoch", "the leader knows nothing",
    ],
)  # fmt: skip
def test_where_to_cut(leader: tuple[int, int], local: tuple[int, int], expected: int) -> None:
    """Our log ends at 20, our watermark is 4."""
    assert truncation_offset(*leader, local, 20, 4) == expected


@st.composite
def histories(draw: st.DrawFn) -> list[int]:
    """The epoch of each record of a log: never falling."""
    return sorted(draw(st.lists(st.integers(0, 6), max_size=12)))


def epochs_of(history: list[int]) -> LeaderEpochCache:
    cache = LeaderEpochCache()
    for offset, epoch in enumerate(history):
        cache.assign(epoch, offset)
    return cache


@given(shared=histories(), ours=st.lists(st.integers(1, 3), max_size=4), theirs=st.lists(st.integers(1, 3), max_size=4))
def test_cutting_ends_at_the_last_common_record(shared: list[int], ours: list[int], theirs: list[int]) -> None:
    """Two logs that parted (no epoch was written by both after that) meet where they parted, and stop cutting."""
    base = shared[-1] if shared else 0
    follower = shared + [base + 2 * step for step in sorted(ours)]
    leader = shared + [base + 2 * step + 1 for step in sorted(theirs)]
    newest = (leader[-1] if leader else 0) + 10
    leader_epochs = epochs_of(leader)
    leader_epochs.assign(newest, len(leader))
    for _ in range(20):
        if not follower:
            break
        found = leader_epochs.end_offset_for(follower[-1], len(leader))
        diverging = diverging_epoch(follower[-1], len(follower), found)
        if diverging is None:
            break
        local = epochs_of(follower).end_offset_for(diverging[0], len(follower))
        cut = truncation_offset(*diverging, local, len(follower), 0)
        assert cut < len(follower), "each round cuts something"
        del follower[cut:]
    assert follower == leader[: len(follower)]
    assert len(follower) >= len(shared)


def test_nothing_known_of_an_epoch_is_an_error_of_its_own() -> None:
    """The leader answers OFFSET_OUT_OF_RANGE then."""
    with pytest.raises(LookupError):
        diverging_epoch(9, 10, (-1, -1))


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(0, 5, 5), (15, 30, Restart(15)), (3, 30, 10), (3, 10, 10)],
    ids=["the leader is shorter", "the leader begins later", "the leader is longer", "equal"],
)  # fmt: skip
def test_where_to_go_on_when_out_of_range(start: int, end: int, expected: int | Restart) -> None:
    """Out of range, a follower cuts to a shorter leader's end, restarts at a later start, or stays at its end."""
    assert out_of_range_position(start, end, 10) == expected


@pytest.mark.parametrize(
    ("start", "end", "first", "last", "expected"),
    [
        (5, 5, 0, 19, Restart(0)),
        (5, 5, 4, 5, Restart(4)),
        (5, 5, 0, 4, None),
        (5, 5, 5, 9, None),
        (5, 5, 6, 9, None),
        (4, 5, 0, 19, None),
    ],
    ids=[
        "it spans our end", "its last record is at our end", "it ends before our end", "it continues our log",
        "it leaves a hole", "we have records",
    ],
)  # fmt: skip
def test_an_empty_log_takes_the_batch_within_which_it_was_to_begin(
    start: int, end: int, first: int, last: int, expected: Restart | None
) -> None:
    """The leader's log start lies within a batch, and it sends whole ones; any other misfit is refused."""
    assert restart_within(start, end, first, last) == expected


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (-1, ErrorCode.NONE),
        (4, ErrorCode.NONE),
        (3, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epochs_of_requests(requested: int, code: ErrorCode) -> None:
    """Kafka's LeaderEpochFileCache.endOffsetFor, with our epoch 4."""
    assert check_leader_epoch(requested, 4) is code


def test_epochs_of_stop_replica() -> None:
    """An older one is fenced; -1 (none) and -2 (deletion) pass."""
    assert check_stop_replica(3, 4) is ErrorCode.FENCED_LEADER_EPOCH
    assert {check_stop_replica(epoch, 4) for epoch in (-1, -2, 4, 5)} == {ErrorCode.NONE}
