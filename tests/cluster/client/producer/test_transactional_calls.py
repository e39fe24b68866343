"""The Producer's transactional calls: in which state they are allowed, how long they take, and how they end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.client import (
    AbortableTransactionError,
    FatalTransactionError,
    IllegalTransactionCall,
    TransactionAborted,
    TransactionTimeout,
)
from cluster.client.producer.delivery import FatalProducerError, ProducerClosed
from cluster.protocol.errors import ErrorCode
from cluster.seams.runner import ThreadRunner
from tests.cluster.client.producer.test_producer import Bench, turn_unlocked
from tests.cluster.client.producer.transactional_bench import (
    ADD,
    END,
    INIT,
    TransactionalBench,
    coded,
)

E = ErrorCode


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    """Transactional calls without a transactional.id raise with Kafka's words."""
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
    with pytest.raises(
        IllegalTransactionCall, match="Cannot call send in state UNINITIALIZED: call init_transactions first"
    ):
        bench.producer.send("t", b"v")
    bench.finish(bench.producer.init_transactions)
    for what in (bench.producer.init_transactions, bench.producer.commit_transaction):
        with pytest.raises(IllegalTransactionCall, match="in state READY"):
            what()
    with pytest.raises(IllegalTransactionCall, match="Cannot call send in state READY: call begin_transaction first"):
        bench.producer.send("t", b"v", partition=0)
    bench.producer.begin_transaction()
    with pytest.raises(
        IllegalTransactionCall,
        match="begin_transaction in state IN_TRANSACTION: commit or abort the open transaction first",
    ):
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
    """A commit whose answer never came fails as one with an unknown outcome."""
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
