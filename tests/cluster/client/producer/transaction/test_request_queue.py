"""The order of requests, the one in flight, and pauses."""

from __future__ import annotations

from cluster.client.producer.transaction.request_queue import TxnRequestQueue
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnIdentity,
)
from tests.cluster.client.producer.transaction.txn_bench import GROUP, GROUP_KEY, ME, OFFSETS, TXN_KEY


def test_the_order_of_requests():
    """FindCoordinator, InitProducerId, additions as they came, EndTxn, and the one that raises the epoch."""
    queue = TxnRequestQueue(lambda failures: 100)
    ordered = [
        FindTxnCoordinator(TXN_KEY),
        FindTxnCoordinator(GROUP_KEY),
        InitTxnProducerId(TxnIdentity("id"), 1000),
        CommitTxnOffsets(ME, GROUP, OFFSETS),
        AddTxnOffsets(ME, GROUP, OFFSETS),
        AddTxnPartitions(ME),
        EndTransaction(ME, True),
        InitTxnProducerId(ME, 1000),
    ]
    for place in (7, 6, 3, 4, 5, 0, 2, 1):
        queue.add(ordered[place])
    assert [each.request for each in queue.waiting] == ordered
    sent = []
    while queue.first is not None:
        sent.append(queue.first.request)
        queue.end(queue.send(queue.first))
    assert sent == ordered


def test_an_answer_is_taken_once():
    """One of another request, or a second one, is no news."""
    queue = TxnRequestQueue(lambda failures: 100)
    queue.add(FindTxnCoordinator(TXN_KEY))
    queued = queue.first
    number = queue.send(queued)
    assert queue.end(number - 1) is None
    assert queue.end(number) is queued
    assert queue.end(number) is None


def test_pauses_grow_and_are_bounded():
    """By the failures so far, and by what the first addition waits at most; the place in the order is kept."""
    queue = TxnRequestQueue(lambda failures: 100 * 2**failures)
    queue.add(AddTxnPartitions(ME))
    queue.add(AddTxnOffsets(ME, GROUP, OFFSETS))
    due = []
    for longest_ms in (None, None, 20, None):
        queued = queue.first
        queue.end(queue.send(queued))
        queue.again(queued, 1000, longest_ms)
        assert isinstance(queue.first.request, AddTxnPartitions)
        due.append(queued.ready_at_ms)
    assert due == [1100, 1200, 1020, 1800]
    assert queue.has(AddTxnOffsets)
    queue.remove(queue.waiting[1])
    assert not queue.has(AddTxnOffsets)
