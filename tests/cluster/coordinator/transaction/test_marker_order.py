"""The order of markers: nothing is lost or sent twice, the small do not wait for the large, and these go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.coordinator.transaction.marker_order import OLDEST_EACH, PIECE, MarkerOrder

MOST = 4 * PIECE


def markers(producer_id: int, count: int, *, of: int = 0, first: int = 0) -> TransactionMarkers:
    partitions = frozenset(("t", first + number) for number in range(count))
    return TransactionMarkers(of, 3, f"id-{producer_id}", producer_id, 0, True, partitions)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 400), st.integers(0, 1)), max_size=12), st.integers(0, 1))
def test_each_partition_gets_one_marker(added: list[tuple[int, int, int]], dropped: int) -> None:
    """But for those of a partition of __transaction_state that is dropped, wherever a transaction was then."""
    order, expected = MarkerOrder(), set()
    for place, (producer_id, count, of) in enumerate(added):
        order.add(markers(producer_id, count, of=of, first=1000 * place))
        if of != dropped:
            expected |= {(producer_id, of, number) for number in range(1000 * place, 1000 * place + count)}
    order.drop(dropped)
    sent: list[tuple[int, int, int]] = []
    while found := order.take(MOST):
        assert sum(len(each.topic_partitions) for each in found) < MOST + PIECE
        sent += [(e.producer_id, e.transaction_partition, n) for e in found for _, n in e.topic_partitions]
    assert sorted(sent) == sorted(expected)
    assert len(order) == 0


@given(st.lists(st.integers(PIECE, 3000), min_size=1, max_size=40), st.integers(0, 30))
def test_a_small_transaction_is_in_the_next_request(large: list[int], requests: int) -> None:
    """However many partitions others name, and whatever was sent before."""
    order = MarkerOrder()
    for producer_id, count in enumerate(large):
        order.add(markers(producer_id, count))
    for _ in range(requests):
        order.take(MOST)
    order.add(markers(99, 1))
    assert 99 in {each.producer_id for each in order.take(MOST)}


def test_a_large_transaction_goes_on_beside_small_ones() -> None:
    """Each fourth piece is its own, though there are always lighter ones."""
    order = MarkerOrder()
    order.add(markers(99, 2 * PIECE))
    left = 2 * PIECE
    for request in range(2 * OLDEST_EACH * 10):
        for number in range(10):
            order.add(markers(10 * request + number + 100, 1))
        left -= sum(len(each.topic_partitions) for each in order.take(10) if each.producer_id == 99)
        if not left:
            return
    raise AssertionError(f"{left} partitions still wait")
