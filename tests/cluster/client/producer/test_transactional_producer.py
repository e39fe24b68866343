"""The Producer's transactions as a program sees them, turn by turn, against a coordinator of the test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.client import (
    AbortableTransactionError,
    ConsumerGroupMetadata,
    FatalTransactionError,
    IllegalTransactionCall,
    OffsetAndMetadata,
    ProducerFenced,
    TransactionAborted,
    TransactionError,
    TransactionTimeout,
)
from cluster.client.producer.actions import FailBatch
from cluster.client.producer.delivery import DeliveryTimeout, FatalProducerError, ProducerClosed, RecordTooLarge
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.seams.runner import ThreadRunner
from tests.cluster.client.producer.test_producer import Bench, records_of, turn_unlocked
from tests.cluster.client.producer.transactional_bench import (
    ADD,
    ADD_OFFSETS,
    COMMIT_OFFSETS,
    END,
    FIND,
    ID,
    INIT,
    NODE,
    PRODUCER_ID,
    TransactionalBench,
    added,
    coded,
    found,
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
    """It is told, and has to abort."""
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
        ({("s", 0): 1}, ConsumerGroupMetadata("g", 5), "a generation without a member id"),
        ({("s", 0): 1}, ConsumerGroupMetadata("g", 2**31, "m"), "a generation has 32 bits"),
    ],
)
def test_offsets_that_cannot_be_sent_are_refused(offsets: Any, group: Any, error: str) -> None:
    """Before they reach the thread that would send them; the transaction continues."""
    bench = TransactionalBench().start()
    with pytest.raises((TypeError, ValueError), match=error):
        bench.producer.send_offsets_to_transaction(offsets, group)
    bench.finish(bench.producer.commit_transaction)


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    """In Kafka's words."""
    producer = Bench().producer
    calls = (producer.init_transactions, producer.begin_transaction, producer.commit_transaction)
    for call in (*calls, producer.abort_transaction, lambda: producer.send_offsets_to_transaction({}, "g")):
        with pytest.raises(IllegalTransactionCall, match="Cannot use transactional methods without enabling"):
            call()


def test_calls_that_do_not_fit_the_state() -> None:
    """Before init, before begin, and twice; nothing of it harms."""
    bench = TransactionalBench()
    for call in (bench.producer.begin_transaction, bench.producer.commit_transaction, bench.producer.abort_transaction):
        with pytest.raises(IllegalTransactionCall, match="in state UNINITIALIZED"):
            call()
    with pytest.raises(IllegalTransactionCall, match="Cannot call send in state UNINITIALIZED"):
        bench.producer.send("t", b"v")
    bench.finish(bench.producer.init_transactions)
    for what in (bench.producer.init_transactions, bench.producer.commit_transaction):
        with pytest.raises(IllegalTransactionCall, match="in state READY"):
            what()
    with pytest.raises(IllegalTransactionCall, match="Cannot call send in state READY"):
        bench.producer.send("t", b"v", partition=0)
    bench.producer.begin_transaction()
    with pytest.raises(IllegalTransactionCall, match="begin_transaction in state IN_TRANSACTION"):
        bench.producer.begin_transaction()
    bench.finish(bench.producer.commit_transaction)


def test_a_call_that_timed_out_is_repeated() -> None:
    """Until then no other is possible; nothing is sent twice."""
    bench = TransactionalBench().start()
    bench.producer.send("t", b"v")
    bench.accept(1)
    bench.silence(END)
    with pytest.raises(TransactionTimeout, match="while awaiting commit_transaction; call commit_transaction again"):
        bench.producer.commit_transaction()
    bench.until(lambda: bench.asked(END))
    for other in (bench.producer.abort_transaction, bench.producer.begin_transaction):
        with pytest.raises(IllegalTransactionCall, match="`commit_transaction` timed out and must be retried"):
            other()
    bench.selector.respond(len(bench.selector.requests) - 1, coded(END)(None, None))
    bench.finish(bench.producer.commit_transaction)
    assert len(bench.asked(END)) == 1
    bench.producer.begin_transaction()


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


def test_the_coordinator_dies_in_a_commit() -> None:
    """Another is found, at an address that no metadata has, and asked the same."""
    bench = TransactionalBench().start()
    bench.producer.send("t", b"v")
    bench.accept(1)
    bench.silence(END)
    with pytest.raises(TransactionTimeout):
        bench.producer.commit_transaction()
    bench.until(lambda: bench.asked(END))
    bench.selector.answers[FIND] = found(9)
    bench.selector.answers[END] = coded(END)
    bench.selector.close_by_peer(NODE)
    bench.finish(bench.producer.commit_transaction)
    assert [node for node, header, _ in bench.selector.requests if header.api_key == END] == [NODE, 9]
    assert bench.order()[-2:] == [FIND, END] and (9, "b9", 9, 0) in bench.selector.connects


def test_a_coordinator_that_went_away_is_looked_up_again() -> None:
    """Its connection was closed with nothing in flight: another broker may have the id now."""
    bench = TransactionalBench().start()
    bench.producer.send("t", b"v")
    bench.accept(1)
    bench.selector.close_by_peer(NODE)
    bench.finish(bench.producer.commit_transaction)
    assert bench.order()[-2:] == [FIND, END]


def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    """Its connection fails before anything is sent."""
    bench = TransactionalBench()
    answers = iter([found(8), found(8)])
    bench.selector.answers[FIND] = lambda request, header: next(answers, found(NODE))(request, header)
    bench.selector.refused.add(8)
    bench.finish(bench.producer.init_transactions)
    assert bench.order() == [FIND, FIND, FIND, INIT]


def test_a_coordinator_that_is_not_there_yet_is_asked_again() -> None:
    """Not available, loading, ending another one's transaction: all is retried, with pauses."""
    bench = TransactionalBench(retry_backoff_ms=20, retry_backoff_max_ms=20)
    finds = iter([found(code=E.COORDINATOR_NOT_AVAILABLE)])
    bench.selector.answers[FIND] = lambda request, header: next(finds, found())(request, header)
    codes = iter([E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS])
    bench.selector.answers[INIT] = lambda request, header: (
        coded(INIT, code)(request, header) if (code := next(codes, None)) else bench.identify(request, header)
    )
    bench.finish(bench.producer.init_transactions)
    assert bench.order() == [FIND, FIND, INIT, FIND, INIT, INIT, INIT]
    assert bench.selector.timeouts.count(20) == 4


def test_an_init_that_is_not_permitted_may_be_repeated() -> None:
    """Neither fatal nor to be aborted."""
    bench = TransactionalBench()
    bench.selector.answers[INIT] = coded(INIT, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(TransactionError, match="call init_transactions again") as caught:
        bench.finish(bench.producer.init_transactions)
    assert not caught.value.is_fatal and bench.producer.fatal_error is None
    bench.selector.answers[INIT] = bench.identify
    bench.finish(bench.producer.init_transactions)


def test_a_timeout_that_no_broker_allows_is_named() -> None:
    """With the setting that is too high, and the one that bounds it."""
    bench = TransactionalBench(transaction_timeout_ms=900_001)
    bench.selector.answers[INIT] = coded(INIT, E.INVALID_TRANSACTION_TIMEOUT)
    with pytest.raises(FatalTransactionError, match=r"transaction\.timeout\.ms 900001 is more than the brokers'"):
        bench.finish(bench.producer.init_transactions)


@pytest.mark.parametrize(("api_key", "window"), [(FIND, (0, 0)), (ADD, (9, 9))])
def test_a_broker_without_transactions_is_fatal(api_key: ApiKey, window: tuple[int, int]) -> None:
    """It is told, and nothing that means something else is sent."""
    bench = TransactionalBench()
    bench.selector.windows[api_key] = window

    def commit() -> None:
        bench.start().producer.send("t", b"v")
        bench.finish(bench.producer.commit_transaction)

    with pytest.raises(FatalTransactionError, match="UNSUPPORTED_VERSION"):
        commit()
    assert api_key not in bench.order()


def test_a_coordinator_that_raises_no_epoch() -> None:
    """Before InitProducerId 3 a batch that was sent and failed is the end of the producer."""
    bench = TransactionalBench()
    bench.selector.windows[INIT] = (0, 2)
    bench.start().producer.send("t", b"v")
    bench.accept(1, E.INVALID_RECORD)
    bench.until(lambda: bench.producer.fatal_error)
    with pytest.raises(FatalTransactionError, match="INVALID_RECORD"):
        bench.producer.abort_transaction()


def test_close_aborts_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the coordinator's answer; afterwards nothing is taken."""
    bench = TransactionalBench(max_block_ms=10_000, linger_ms=100_000)
    monkeypatch.setattr(bench.producer._shared.changed, "wait", lambda timeout_s: turn_unlocked(bench))
    bench.start()
    future = bench.producer.send("t", b"v")
    bench.until(lambda: bench.asked(ADD))
    bench.producer.close()
    assert not bench.asked(END)[0].committed
    assert isinstance(future.exception(0), TransactionAborted)
    with pytest.raises(ProducerClosed):
        bench.producer.begin_transaction()
    with pytest.raises(ProducerClosed):
        bench.producer.send("t", b"w")


def test_close_does_not_wait_forever(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A coordinator that does not answer aborts by itself, in its time."""
    bench = TransactionalBench(max_block_ms=2_000)
    monkeypatch.setattr(bench.producer._shared.changed, "wait", lambda timeout_s: turn_unlocked(bench))
    bench.start()
    bench.producer.send("t", b"v")
    bench.accept(1)
    bench.silence(END)
    bench.producer.close()
    assert "closed with an open transaction" in caplog.text
    assert bench.clock.monotonic_ms() >= 2_000


def test_a_commit_that_is_closed_away_says_that_it_may_have_happened() -> None:
    """Its answer never came."""
    bench = TransactionalBench().start()
    bench.producer.send("t", b"v")
    bench.accept(1)
    bench.silence(END)
    with pytest.raises(TransactionTimeout):
        bench.producer.commit_transaction()
    bench.until(lambda: bench.asked(END))
    call = bench.producer._shared.transactions._ledger.transition.call
    bench.producer.close(0)
    bench.producer._io._turn()
    assert isinstance(call.error, FatalTransactionError) and call.error.may_be_committed


def test_in_a_callback_nothing_is_waited_for() -> None:
    """It would wait for itself: the call begins, and is to be repeated outside."""
    bench = TransactionalBench(max_block_ms=60_000)
    bench.runner.is_current = True
    bench.finish(bench.producer.init_transactions)
    bench.producer.begin_transaction()
    bench.finish(bench.producer.commit_transaction)


def test_a_forked_process_is_told() -> None:
    """Nobody would send anything there; closing does not wait, not even for what is open."""
    bench = TransactionalBench(max_block_ms=0).start()
    bench.producer.send("t", b"v")
    bench.producer._io._runner = thread = ThreadRunner("forked")
    thread.start(bool)
    assert thread.join(None)
    for call in (bench.producer.init_transactions, bench.producer.begin_transaction):
        with pytest.raises(RuntimeError, match="fork"):
            call()
    bench.producer._shared.changed.wait = None  # type: ignore[assignment, method-assign]
    bench.producer.close(60)


def test_a_thread_that_fails_leaves_no_call_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours is a fatal error with its text, for a call as for a record."""
    bench = TransactionalBench(max_block_ms=60_000)

    def fail(now_ms: int) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(bench.producer._shared.core, "tick", fail)

    def turn(timeout_s: float) -> None:
        bench.producer._lock.release()
        try:
            bench.runner.step()
        finally:
            bench.producer._lock.acquire()

    monkeypatch.setattr(bench.producer._shared.changed, "wait", turn)
    with pytest.raises(FatalProducerError, match="ZeroDivisionError: a mistake"):
        bench.producer.init_transactions()
    bench.producer.close()


def test_how_long_calls_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-761: of each call the time of all that have succeeded, to the nanosecond; a failed one does not count."""
    bench = TransactionalBench(max_block_ms=60_000)
    monkeypatch.setattr(bench.producer._shared.changed, "wait", lambda timeout_s: turn_unlocked(bench))
    begin = bench.producer._shared.transactions.begin_transaction

    def slow_begin() -> None:
        bench.clock.advance_ms(3)
        begin()

    monkeypatch.setattr(bench.producer._shared.transactions, "begin_transaction", slow_begin)
    took = dict.fromkeys(("init", "begin", "send-offsets", "commit", "abort"), 0)

    def told() -> dict[str, float]:
        metrics = bench.producer.metrics()
        return {name: metrics[f"txn-{name}-time-ns-total"] for name in took}

    def make(name: str, call: Callable[[], None]) -> None:
        began_ns = bench.clock.monotonic_ns()
        call()
        took[name] += bench.clock.monotonic_ns() - began_ns
        assert told() == took

    assert told() == took
    make("init", bench.producer.init_transactions)
    bench.until(lambda: bench.producer._shared.version)
    bench.learn("t")
    for _ in range(2):
        make("begin", bench.producer.begin_transaction)
        make("send-offsets", lambda: bench.producer.send_offsets_to_transaction({("t", 0): 1}, "group"))
        make("commit", bench.producer.commit_transaction)
    make("begin", bench.producer.begin_transaction)
    future = bench.producer.send("t", b"v")
    bench.accept(1, E.INVALID_RECORD)
    bench.until(future.done)
    with pytest.raises(AbortableTransactionError):
        bench.producer.commit_transaction()
    assert told() == took
    make("abort", bench.producer.abort_transaction)
    assert all(took.values())


def test_a_call_that_times_out_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its repetition counts, from when it was made."""
    bench = TransactionalBench(max_block_ms=1_000)
    monkeypatch.setattr(bench.producer._shared.changed, "wait", lambda timeout_s: turn_unlocked(bench))
    bench.silence(INIT)
    with pytest.raises(TransactionTimeout):
        bench.producer.init_transactions()
    assert bench.producer.metrics()["txn-init-time-ns-total"] == 0
    (number,) = (at for at, (_, header, _body) in enumerate(bench.selector.requests) if header.api_key == INIT)
    _node, header, request = bench.selector.requests[number]
    bench.selector.respond(number, bench.identify(request, header))
    began_ns = bench.clock.monotonic_ns()
    bench.producer.init_transactions()
    took_ns = bench.clock.monotonic_ns() - began_ns
    assert bench.producer.metrics()["txn-init-time-ns-total"] == took_ns > 0
