"""The Producer's transactions with a coordinator that dies, moves, refuses, or is of another version."""

from __future__ import annotations

import pytest

from cluster.client import (
    FatalTransactionError,
    TransactionError,
    TransactionTimeout,
)
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.transactional_bench import (
    ADD,
    END,
    FIND,
    INIT,
    NODE,
    TransactionalBench,
    coded,
    found,
)

E = ErrorCode


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
