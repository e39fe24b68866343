"""Futures of records: one outcome, told in order, to whoever waits in whatever thread."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.delivery import (
    BufferExhausted,
    DeliveryTimeout,
    FatalProducerError,
    ProduceError,
    ProducerClosed,
    RecordMetadata,
    RecordTooLarge,
)
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.waiting import telling_condition


def batch_with(count, on_delivery=None):
    batch = ProducerBatch("t", 1, 16_384, 0, 0)
    futures = [batch.try_append(50 + index, b"k", b"vv", (), on_delivery) for index in range(count)]
    return batch, futures


def test_offsets_follow_each_other():
    """A record's offset is the batch's and its place there; its time is its own unless the broker has another."""
    batch, (first, second) = batch_with(2)
    assert not first.done() and "not done" in repr(first)
    assert batch.complete(10)
    assert first.done() and first.exception() is None
    assert second.result() == RecordMetadata("t", 1, 11, 51, 1, 2)
    batch, futures = batch_with(2)
    batch.complete(10, log_append_time_ms=77)
    assert [future.result(0).timestamp_ms for future in futures] == [77, 77]


def test_an_unknown_offset():
    """With acks=0, or for a duplicate, no record has an offset."""
    batch, futures = batch_with(2)
    batch.complete(-1)
    assert [future.result(0).offset for future in futures] == [-1, -1]


def test_one_outcome_ever():
    """The first outcome stands; every further one is refused and tells nobody."""
    told = []
    error = DeliveryTimeout.of(2, "t", 1, 120_000)
    for finish in (lambda batch: batch.complete(5), lambda batch: batch.fail(error)):
        batch, _futures = batch_with(2, lambda error, metadata: told.append((metadata, error)))
        assert finish(batch)
        assert not batch.complete(9) and not batch.fail(ProducerClosed())
    assert told == [
        (RecordMetadata("t", 1, 5, 50, 1, 2), None),
        (RecordMetadata("t", 1, 6, 51, 1, 2), None),
        (RecordMetadata("t", 1, -1, -1, -1, -1), error),
        (RecordMetadata("t", 1, -1, -1, -1, -1), error),
    ]


def test_failure():
    """The error is raised to each who asks, with a traceback of its own; single records may have another one."""
    batch, (first, second) = batch_with(2)
    error, other = (
        ProduceError(ErrorCode.INVALID_RECORD, "in bad company"),
        ProduceError(ErrorCode.INVALID_RECORD, "bad"),
    )
    batch.fail(error, {1: other})
    lengths = set()
    for _ in range(3):
        with pytest.raises(ProduceError) as caught:
            first.result(0)
        lengths.add(len(caught.traceback))
        assert caught.value is error
    assert len(lengths) == 1
    assert second.exception(0) is other


def test_callbacks_in_record_order():
    """What was given with a record and what was added to its future is called in the order of the records."""
    told = []
    batch = ProducerBatch("t", 1, 16_384, 0, 0)
    futures = [
        batch.try_append(1, None, b"", (), lambda _error, _metadata, index=index: told.append(index))
        for index in range(3)
    ]
    for future in reversed(futures):
        future.add_done_callback(lambda future: told.append(future.result(0).offset))
    batch.complete(100)
    assert told == [0, 100, 1, 101, 2, 102]
    futures[1].add_done_callback(lambda future: told.append("late"))
    assert told[-1] == "late"


def test_a_callback_that_raises_is_logged(caplog):
    """A program's error stays the program's: the other records are told, and waiters are woken."""

    def broken(_error, _metadata):
        raise KeyError("mine")

    batch, futures = batch_with(2, broken)
    told = []
    futures[1].add_done_callback(told.append)
    with caplog.at_level(logging.ERROR):
        assert batch.complete(0)
    assert told == [futures[1]] and batch.wait_until_done(0)
    assert [record.getMessage() for record in caplog.records] == ["a callback for a record of t-1 failed"] * 2


def test_a_callback_may_ask_its_future():
    """Within a callback every record of the batch is done: asking for its outcome does not wait forever."""
    told = []
    batch, futures = batch_with(2, lambda _error, _metadata: told.append(futures[1].result(0).offset))
    batch.complete(3)
    assert told == [4, 4]


def test_waiting_ends():
    """Who waits for too long is told so, and may wait again."""
    batch, (future,) = batch_with(1)
    with pytest.raises(TimeoutError, match=r"t-1 in 0.001 s"):
        future.result(0.001)
    batch.complete(1)
    assert future.result(0.001).offset == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize("is_split", [False, True])
def test_waiting_threads(monkeypatch, is_split):
    """Threads that wait for records, and for the batch, wake with the outcome; also when it was split meanwhile."""
    begun = telling_condition(monkeypatch)
    batch, futures = batch_with(6)
    found = {}

    def wait(index):
        found[index] = futures[index].result().offset

    def flush():
        found["all"] = batch.wait_until_done()

    threads = [threading.Thread(target=wait, args=(index,), daemon=True) for index in range(6)]
    threads.append(threading.Thread(target=flush, daemon=True))
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=10)
    if is_split:
        first, second = batch.split(1 << 20)
        third, fourth = first.split(1 << 20)
        for part, offset in ((second, 30), (fourth, 20), (third, 10)):
            part.complete(offset)
    else:
        batch.complete(10)
    for thread in threads:
        thread.join(2)
    offsets = [10, 11, 20, 30, 31, 32] if is_split else range(10, 16)
    assert found == {**dict(enumerate(offsets)), "all": True}


@pytest.mark.timeout(20)
def test_an_outcome_from_two_threads():
    """If two threads finish a batch at once, one does."""
    for _ in range(50):
        batch, _futures = batch_with(1)
        ready = threading.Barrier(2)
        won = []

        def finish(batch=batch, ready=ready, won=won):
            ready.wait()
            won.append(batch.complete(1))

        threads = [threading.Thread(target=finish) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == [False, True]


GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent
from cluster.client.producer.batch import ProducerBatch
batch = ProducerBatch("t", 0, 16384, 0, 0)
futures = [batch.try_append(1, None, b"", (), None) for _ in range(20)]
waiters = [gevent.spawn(future.result, 5) for future in futures]
flush = gevent.spawn(batch.wait_until_done, 5)
gevent.sleep(0)
assert not any(waiter.ready() for waiter in waiters)
gevent.spawn(batch.complete, 7).join()
print([waiter.get(timeout=5).offset for waiter in waiters] == list(range(7, 27)), flush.get(timeout=5))
"""


def test_under_gevent():
    """Greenlets that wait for records let each other run, and wake with the outcome."""
    done = subprocess.run([sys.executable, "-c", GEVENT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_the_texts():
    """What an error says is Kafka's sense, and whether the same record may be sent again."""
    assert [(str(error), error.retriable) for error in (
        DeliveryTimeout.of(3, "t", 0, 120_001),
        RecordTooLarge.than(2_000_000, "max.request.size", 1_048_576),
        BufferExhausted.after(16_384, 60_000, 33_554_432, 100),
        ProducerClosed(),
        FatalProducerError(ErrorCode.REQUEST_TIMED_OUT, "over"),
    )] == [
        ("REQUEST_TIMED_OUT: Expiring 3 record(s) for t-0:120001 ms has passed since batch creation", True),
        ("MESSAGE_TOO_LARGE: The message is 2000000 bytes when serialized which is larger than 1048576, which is the "
         "value of the max.request.size configuration.", False),
        ("REQUEST_TIMED_OUT: Failed to allocate 16384 bytes within the configured max blocking time 60000 ms. Total "
         "memory: 33554432 bytes. Available memory: 100 bytes.", True),
        ("Producer is closed forcefully.", False),
        ("REQUEST_TIMED_OUT: over", False),
    ]  # fmt: skip
