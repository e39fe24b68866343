"""The Producer's transactions as a program sees them, turn by turn, against a coordinator of the test's."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.client import (
    AbortableTransactionError,
    ConsumerGroupMetadata,
    IllegalTransactionCall,
    OffsetAndMetadata,
    ProducerFenced,
    TransactionAborted,
    TransactionTimeout,
)
from cluster.client.producer.actions import FailBatch
from cluster.client.producer.delivery import DeliveryTimeout, FatalProducerError, RecordTooLarge
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.test_producer import records_of
from tests.cluster.client.producer.transactional_bench import (
    ADD,
    ADD_OFFSETS,
    COMMIT_OFFSETS,
    END,
    FIND,
    ID,
    INIT,
    PRODUCER_ID,
    TransactionalBench,
    added,
    coded,
    headers_of,
    offsets_committed,
)

E = ErrorCode
PRODUCE = ApiKey.PRODUCE


def test_all_of_it_is_committed() -> None:
    """Partition by partition it is added before anything is sent there; EndTxn comes after the last answer."""
    bench = TransactionalBench(partitions=2).start()
    futures = [bench.producer.send("t", b"%d" % partition, partition=partition) for partition in (0, 1)]
    request = bench.accept(1)
    bench.finish(bench.producer.commit_transaction)
    assert bench.order() == [FIND, INIT, ADD, PRODUCE, END]
    assert request.transactional_id == ID
    for header in headers_of(request):
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (PRODUCER_ID, 0, 0)
    assert [future.result(0).offset for future in futures] == [0, 0]
    (ended,) = bench.asked(END)
    assert (ended.transactional_id, ended.producer_id, ended.producer_epoch, ended.committed) == (
        ID,
        PRODUCER_ID,
        0,
        True,
    )


def test_nothing_goes_to_a_partition_that_is_not_added() -> None:
    """However long the coordinator is silent; what is full and flushed waits, too."""
    bench = TransactionalBench(linger_ms=0).start()
    bench.silence(ADD)
    bench.producer.send("t", b"v")
    bench.until(lambda: bench.asked(ADD))
    with bench.producer._lock:
        bench.producer._shared.accumulator.begin_flush()
    for _ in range(20):
        bench.producer._io._turn()
    assert bench.produced() == []
    bench.selector.respond(len(bench.selector.requests) - 1, added()(bench.asked(ADD)[0], None))
    bench.accept(1)


def test_the_next_transaction_numbers_on() -> None:
    """Under the same epoch sequences continue, and the partition is added again."""
    bench = TransactionalBench().start()
    for number in (1, 2):
        bench.producer.send("t", b"v")
        request = bench.accept(number)
        assert headers_of(request)[0].base_sequence == number - 1
        bench.finish(bench.producer.commit_transaction)
        bench.producer.begin_transaction()
    assert len(bench.asked(ADD)) == 2


def test_only_partitions_with_records_are_added() -> None:
    """Also if the producer chooses them: each one more is one more marker."""
    bench = TransactionalBench(partitions=50, batch_size=200).start()
    for number in range(1, 9):
        bench.producer.send("t", bytes(150))
        (produced,) = bench.accept(number).partitions
        assert [list(topic.partitions) for topic in bench.asked(ADD)[-1].v3_and_below_topics] == [[produced.partition]]
        bench.finish(bench.producer.commit_transaction)
        bench.producer.begin_transaction()
    assert len(bench.asked(ADD)) == 8


def test_the_end_does_not_linger() -> None:
    """What waits to be filled is sent as soon as the transaction is to be committed."""
    bench = TransactionalBench(linger_ms=100_000).start()
    future = bench.producer.send("t", b"v")
    with pytest.raises(TransactionTimeout):
        bench.producer.commit_transaction()
    bench.accept(1)
    bench.finish(bench.producer.commit_transaction)
    assert future.result(0).offset == 0 and bench.clock.monotonic_ms() < 100_000


def test_a_transaction_without_records_ends_without_a_request() -> None:
    """The coordinator does not know that it began."""
    bench = TransactionalBench().start()
    bench.finish(bench.producer.commit_transaction)
    bench.producer.begin_transaction()
    bench.finish(bench.producer.abort_transaction)
    assert bench.order() == [FIND, INIT]


def test_an_abort_drops_what_was_not_sent() -> None:
    """And waits for the answer about what was; then it says so to the coordinator."""
    bench = TransactionalBench(partitions=2, linger_ms=100_000).start()
    sent = bench.producer.send("t", b"v", partition=0)
    with bench.producer._lock:
        bench.producer._shared.accumulator.begin_flush()
    bench.next_request(1)
    with bench.producer._lock:
        bench.producer._shared.accumulator.end_flush()
    unsent = bench.producer.send("t", b"w", partition=1)
    with pytest.raises(TransactionTimeout):
        bench.producer.abort_transaction()
    bench.until(unsent.done)
    assert isinstance(unsent.exception(0), TransactionAborted) and bench.asked(END) == []
    bench.accept(1)
    bench.finish(bench.producer.abort_transaction)
    assert sent.result(0).offset == 0 and not bench.asked(END)[0].committed
    assert bench.producer.metrics()["buffer-available-bytes"] == bench.producer.metrics()["buffer-total-bytes"]


def test_a_record_that_failed_fails_the_commit() -> None:
    """The program aborts, the epoch is raised, and numbers start from 0 again (KIP-360)."""
    bench = TransactionalBench().start()
    future = bench.producer.send("t", b"v")
    bench.accept(1, E.INVALID_RECORD)
    bench.until(future.done)
    with pytest.raises(AbortableTransactionError, match=r"INVALID_RECORD.*abort the transaction"):
        bench.producer.commit_transaction()
    assert isinstance(bench.producer.send("t", b"w").exception(0), AbortableTransactionError)
    bench.finish(bench.producer.abort_transaction)
    assert bench.order()[-2:] == [END, INIT]
    bench.producer.begin_transaction()
    bench.producer.send("t", b"x")
    (header,) = headers_of(bench.accept(2))
    assert (header.producer_epoch, header.base_sequence) == (1, 0)
    bench.finish(bench.producer.commit_transaction)
    assert bench.producer.metrics()["producer-epoch"] == 1


def test_what_follows_a_lost_batch_is_not_renumbered() -> None:
    """Its sequence is refused, for one before it is missing: it fails, and is not stored under other numbers."""
    bench = TransactionalBench(batch_size=200, retry_backoff_ms=10).start()
    first, second = (bench.producer.send("t", b"x" * 150, partition=0) for _ in range(2))
    bench.accept(1, E.INVALID_RECORD)
    (header,) = headers_of(bench.accept(2, E.OUT_OF_ORDER_SEQUENCE_NUMBER))
    bench.until(second.done)
    assert header.base_sequence == 1 and first.exception(0) is not None and second.exception(0) is not None
    bench.finish(bench.producer.abort_transaction)
    assert len(bench.produced()) == 2


def test_a_batch_that_expired_at_its_broker_is_waited_for() -> None:
    """Its answer is no news to the program, but it may still be stored: the abort comes after the request's end."""
    bench = TransactionalBench(delivery_timeout_ms=600, request_timeout_ms=500, retry_backoff_ms=10).start()
    was_idle = []

    def end(request: Any, header: Any) -> Any:
        was_idle.append(bench.producer._shared.core.is_idle)
        return coded(END)(request, header)

    bench.selector.answers[END] = end
    future = bench.producer.send("t", b"v")
    bench.next_request(1)
    bench.clock.advance_ms(300)
    bench.accept(1, E.NOT_ENOUGH_REPLICAS)
    bench.next_request(2)
    bench.until(future.done)
    assert isinstance(future.exception(0), DeliveryTimeout) and not bench.producer._shared.core.is_idle
    bench.finish(bench.producer.abort_transaction)
    assert was_idle == [True] and bench.order()[-2:] == [END, INIT]


def test_a_zombie_is_fenced() -> None:
    """It is told at its next step, and can do nothing anymore; what it had is dropped."""
    bench = TransactionalBench(linger_ms=100_000).start()
    bench.selector.answers[ADD] = added(E.PRODUCER_FENCED)
    future = bench.producer.send("t", b"v")
    bench.until(future.done)
    assert isinstance(future.exception(0), ProducerFenced)
    for call in (bench.producer.commit_transaction, bench.producer.abort_transaction, bench.producer.begin_transaction):
        with pytest.raises(ProducerFenced, match="a newer producer has the same transactional"):
            call()
    assert isinstance(bench.producer.fatal_error, ProducerFenced) and bench.producer.metrics()["is-fatal"]
    assert isinstance(bench.producer.send("t", b"w").exception(0), FatalProducerError)
    bench.producer.close()
    with pytest.raises(ProducerFenced):
        bench.producer.begin_transaction()


def test_what_a_fenced_producer_sent_may_be_stored() -> None:
    """Its code does not claim that it is not: the leader may have it, without having answered."""
    bench = TransactionalBench(partitions=2).start()
    sent = bench.producer.send("t", b"v", partition=0)
    bench.next_request(1)
    bench.selector.answers[ADD] = added(E.PRODUCER_FENCED)
    unsent = bench.producer.send("t", b"w", partition=1)
    bench.until(lambda: sent.done() and unsent.done())
    error = sent.exception(0)
    assert isinstance(error, ProducerFenced) and error.error_code is E.REQUEST_TIMED_OUT
    assert unsent.exception(0).error_code is E.PRODUCER_FENCED


def test_offsets_are_part_of_it() -> None:
    """The group is added at the transaction's coordinator, and its offsets go to its own, with the member (KIP-447)."""
    bench = TransactionalBench().start()
    group = ConsumerGroupMetadata("g", 5, "m", "i")
    offsets = {("s", 1): OffsetAndMetadata(10, 3, "text"), ("s", 0): 20}
    bench.finish(lambda: bench.producer.send_offsets_to_transaction(offsets, group))
    bench.finish(bench.producer.commit_transaction)
    (committed,) = bench.asked(COMMIT_OFFSETS)
    assert bench.asked(ADD_OFFSETS)[0].group_id == "g"
    assert (committed.group_id, committed.generation_id, committed.member_id, committed.group_instance_id) == group
    (topic,) = committed.topics
    assert [
        (each.partition_index, each.committed_offset, each.committed_leader_epoch, each.committed_metadata)
        for each in topic.partitions
    ] == [(1, 10, 3, "text"), (0, 20, -1, "")]
    assert bench.order()[2:][-1] is END


def test_the_same_offsets_twice_are_two_calls() -> None:
    """Unless the first one timed out: then it is the same call, in this transaction."""
    bench = TransactionalBench().start()
    offsets = {("s", 0): 1}
    for committed in (1, 2):
        bench.finish(lambda: bench.producer.send_offsets_to_transaction(offsets, "g"))
        assert len(bench.asked(COMMIT_OFFSETS)) == committed
    with pytest.raises(TransactionTimeout):
        bench.producer.send_offsets_to_transaction(offsets, "g")
    bench.finish(bench.producer.abort_transaction)
    bench.producer.begin_transaction()
    bench.finish(lambda: bench.producer.send_offsets_to_transaction(offsets, "g"))
    assert len(bench.asked(COMMIT_OFFSETS)) == 3


def test_a_member_that_was_replaced_commits_nothing() -> None:
    """Offsets of a fenced member are refused, and its transaction can only be aborted."""
    bench = TransactionalBench().start()
    bench.selector.answers[COMMIT_OFFSETS] = offsets_committed(E.ILLEGAL_GENERATION)
    with pytest.raises(AbortableTransactionError, match="TxnOffsetCommit was refused"):
        bench.finish(
            lambda: bench.producer.send_offsets_to_transaction({("s", 0): 1}, ConsumerGroupMetadata("g", 5, "m"))
        )
    with pytest.raises(AbortableTransactionError):
        bench.producer.commit_transaction()
    bench.finish(bench.producer.abort_transaction)


@pytest.mark.parametrize(
    ("offsets", "group", "error"),
    [
        ([], "g", "offsets come as a mapping"),
        ({"s": 1}, "g", "a partition is named by a pair"),
        ({("s", 0): "1"}, "g", "the offset of s-0 is an integer"),
        ({("s", 0): -1}, "g", "Invalid negative offset: -1 of s-0"),
        ({("s", 0): 2**63}, "g", "the offset of s-0 has 64 bits"),
        ({("s", 0): OffsetAndMetadata(1, 2**40)}, "g", "a leader epoch has 32 bits"),
        ({("s", 0): OffsetAndMetadata(1, 1, "m" * 40_000)}, "g", "the metadata of an offset is valid text"),
        ({("s", 0): 1}, "", "has no group id"),
        ({("s", 0): 1}, "g\ud800", "a group id is valid text"),
        ({("s", 0): 1}, None, "a group is a ConsumerGroupMetadata or its id, not NoneType"),
        ({("s", 0): 1}, ConsumerGroupMetadata("g", 5), "a generation without a member id; pass what group_metadata"),
        ({("s", 0): 1}, ConsumerGroupMetadata("g", 2**31, "m"), "a generation has 32 bits"),
    ],
)
def test_offsets_that_cannot_be_sent_are_refused(offsets: Any, group: Any, error: str) -> None:
    """Before they reach the thread that would send them; the transaction continues."""
    bench = TransactionalBench().start()
    with pytest.raises((TypeError, ValueError), match=error):
        bench.producer.send_offsets_to_transaction(offsets, group)
    bench.finish(bench.producer.commit_transaction)


def test_no_record_gets_into_a_batch_that_is_dropped() -> None:
    """It is closed before anyone else can look: not when its error is told."""
    bench = TransactionalBench(partitions=2, linger_ms=100_000).start()
    bench.producer.send("t", b"v", partition=0)
    bench.until(lambda: bench.asked(ADD))
    bench.selector.answers[ADD] = added(E.TOPIC_AUTHORIZATION_FAILED)
    carry_out, closed = bench.producer._io._carry_out, []

    def look(actions: list[Any], now_ms: int) -> int | None:
        closed.extend(each.batch.is_closed for each in actions if isinstance(each, FailBatch))
        return carry_out(actions, now_ms)

    bench.producer._io._carry_out = look  # type: ignore[method-assign]
    future = bench.producer.send("t", b"w", partition=1)
    bench.until(future.done)
    assert closed == [True, True]


def test_no_record_gets_into_a_transaction_that_ends() -> None:
    """Not even into an open batch, by the short way of nearly all records."""
    bench = TransactionalBench(linger_ms=100_000).start()
    bench.producer.send("t", b"v", partition=0)
    with pytest.raises(TransactionTimeout):
        bench.producer.commit_transaction()
    with pytest.raises(IllegalTransactionCall):
        bench.producer.send("t", b"w", partition=0)
    assert [record.value for record in records_of(bench.accept(1))] == [b"v"]


def test_records_of_one_transaction_share_a_batch() -> None:
    """The short way costs the same as without transactions: nothing is asked of the manager for each record."""
    bench = TransactionalBench(linger_ms=100_000).start()
    bench.producer.send("t", b"0", partition=0)
    asked = []
    manager = bench.producer._shared.transactions
    assert manager is not None
    manager.use_partition = asked.append  # type: ignore[method-assign]
    for number in range(1, 9):
        bench.producer.send("t", b"%d" % number, partition=0)
    assert asked == []
    with pytest.raises(TransactionTimeout):
        bench.producer.commit_transaction()
    assert len(records_of(bench.accept(1))) == 9


def test_a_record_that_was_never_sent_fails_the_transaction() -> None:
    """Whether or not the program looks at its future: a commit without it would not be all or nothing."""
    bench = TransactionalBench(max_request_size=1_000, batch_size=500).start()
    assert isinstance(bench.producer.send("t", b"x" * 2_000).exception(0), RecordTooLarge)
    with pytest.raises(AbortableTransactionError, match="MESSAGE_TOO_LARGE: a record of the transaction was not sent"):
        bench.producer.commit_transaction()
    bench.finish(bench.producer.abort_transaction)
    bench.producer.begin_transaction()
    assert bench.order() == [FIND, INIT]
