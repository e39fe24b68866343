"""buffer.memory: never more than there is, first come first served, and an end to all waiting."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.producer.buffer_pool import BufferPool, MemoryAccount
from cluster.client.producer.delivery import BufferExhausted, ProducerClosed, RecordTooLarge
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.waiting import telling_condition

#: No batch is without a header, so nobody claims 0 bytes; whoever did would be met before those who wait.
STEPS = st.lists(
    st.tuples(st.sampled_from(["claim", "claim", "release", "withdraw"]), st.integers(1, 110)), max_size=60
)


@given(STEPS)
def test_the_account(steps):
    """Taken, held and available bytes are always the total; claims are met in the order in which they came."""
    account = MemoryAccount(100)
    waiting, taken = [], []

    def meet(met):
        assert met == waiting[: len(met)] and all(claim.is_met for claim in met)
        taken.extend(met)
        del waiting[: len(met)]

    for what, number in steps:
        if what == "claim" and number > 100:
            with pytest.raises(RecordTooLarge, match=r"buffer\.memory"):
                account.claim(number)
        elif what == "claim":
            claim = account.claim(number)
            (taken if claim.is_met else waiting).append(claim)
            assert not (claim.is_met and waiting)
        elif what == "release" and taken:
            meet(account.release(taken.pop(number % len(taken)).size_bytes))
        elif what == "withdraw" and waiting:
            meet(account.withdraw(waiting.pop(number % len(waiting))))
        held = sum(claim.held_bytes for claim in waiting)
        assert account.available_bytes + held + sum(claim.size_bytes for claim in taken) == 100
        assert account.waiting == len(waiting) and not any(claim.is_met for claim in waiting)
        # Whoever is first has all that is there: it waits for no one but those who have memory.
        assert not (waiting and account.available_bytes) and not any(claim.held_bytes for claim in waiting[1:])
    while taken:
        meet(account.release(taken.pop().size_bytes))
    assert not waiting and account.available_bytes == 100


@pytest.fixture
def begun(monkeypatch):
    return telling_condition(monkeypatch)


def allocating(pool, size_bytes, begun, outcomes):
    """A thread that waits for memory, and notes in ``outcomes`` what became of that."""

    def allocate():
        try:
            pool.allocate(size_bytes, 10_000)
            outcomes.append(size_bytes)
        except ProducerClosed as error:
            outcomes.append(error)

    thread = threading.Thread(target=allocate)
    thread.start()
    assert begun.acquire(timeout=10)
    return thread


@pytest.mark.timeout(30)
def test_threads_get_memory_in_their_order(begun):
    """A large claim that came first is met, piece by piece, before a small one that would fit at once."""
    pool = BufferPool(100)
    pool.allocate(50, 0)
    pool.allocate(40, 0)
    outcomes = []
    large = allocating(pool, 90, begun, outcomes)
    small = allocating(pool, 5, begun, outcomes)
    assert (pool.waiting, pool.available_bytes) == (2, 0)
    pool.release(50)
    assert (pool.waiting, outcomes) == (2, [])
    pool.release(40)
    large.join(10)
    small.join(10)
    assert (sorted(outcomes), pool.waiting, pool.available_bytes) == ([5, 90], 0, 5)


@pytest.mark.timeout(30)
def test_time_runs_out(begun):
    """After max.block.ms it is an error that may be retried; what was put aside goes to who is next."""
    pool = BufferPool(100)
    pool.allocate(60, 0)
    with pytest.raises(
        BufferExhausted, match=r"Failed to allocate 50 bytes within .* 1 ms. Total memory: 100"
    ) as caught:
        pool.allocate(50, 1)
    assert caught.value.retriable and caught.value.error_code is ErrorCode.REQUEST_TIMED_OUT
    assert (pool.waiting, pool.available_bytes) == (0, 40)
    pool.allocate(40, 0)
    with pytest.raises(RecordTooLarge, match="101 bytes"):
        pool.allocate(101, 10_000)
    assert "0 of 100 bytes available, 0 waiting" in repr(pool)


@pytest.mark.timeout(30)
def test_closing_ends_all_waiting(begun):
    """Whoever waits is told that the producer is closed, and so is whoever comes; nothing is lost by that."""
    pool = BufferPool(100)
    pool.allocate(70, 0)
    outcomes = []
    threads = [allocating(pool, size, begun, outcomes) for size in (80, 5)]
    pool.close()
    for thread in threads:
        thread.join(10)
    assert [type(outcome) for outcome in outcomes] == [ProducerClosed, ProducerClosed]
    pool.release(70)
    assert (pool.waiting, pool.available_bytes) == (0, 100)
    with pytest.raises(ProducerClosed):
        pool.allocate(1, 0)


@pytest.mark.timeout(30)
def test_an_interrupted_thread_holds_nothing(monkeypatch):
    """If waiting is broken off, by Ctrl-C say, after the memory came, it is given back."""
    pool = BufferPool(100)
    pool.allocate(90, 0)

    def interrupted(self, predicate, timeout=None):
        pool._account.release(90)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Condition, "wait_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.allocate(50, 1000)
    assert (pool.waiting, pool.available_bytes) == (0, 100)
