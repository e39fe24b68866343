"""What a client's error asks of a transactional producer, for both clients that the load has."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from cluster.client.producer.delivery import ProducerClosed
from cluster.client.producer.transaction.transaction_errors import (
    TransactionTimeout,
    abortable,
    fatal_to_transactions,
    not_initialized,
)
from cluster.protocol.errors import ErrorCode
from loadgen.clients import confluent_transactions, native_transactions
from loadgen.clients.transactional import Remedy

FENCED, LATE = ErrorCode.PRODUCER_FENCED, ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("error", "remedy", "is_certain"),
    [
        (abortable(LATE, "a record failed"), Remedy.ABORT, True),
        (abortable(LATE, "no answer", may_be_committed=True), Remedy.ABORT, False),
        (TransactionTimeout.of("commit_transaction", 1000), Remedy.REPEAT, False),
        (fatal_to_transactions(FENCED, "fenced"), Remedy.REPLACE, True),
        (fatal_to_transactions(FENCED, "fenced", may_be_committed=True), Remedy.REPLACE, False),
        (not_initialized(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no coordinator"), Remedy.REPEAT, True),
        (ProducerClosed(), Remedy.REPLACE, False),
    ],
)
def test_our_client_says_what_to_do_by_the_class(error: Exception, remedy: Remedy, is_certain: bool) -> None:
    """And whether the commit may have happened."""
    refusal = native_transactions.refusal_of(error)  # type: ignore[arg-type]
    assert (refusal.remedy, refusal.is_certain) == (remedy, is_certain)
    assert "\n" not in str(refusal)


@pytest.mark.parametrize(
    ("flags", "remedy"),
    [
        ({"txn_requires_abort": True}, Remedy.ABORT),
        ({"retriable": True}, Remedy.REPEAT),
        ({"fatal": True}, Remedy.REPLACE),
        ({"fatal": True, "retriable": True}, Remedy.REPLACE),
        ({}, Remedy.REPLACE),
    ],
)
def test_librdkafka_says_what_to_do_by_flags(flags: dict[str, bool], remedy: Remedy) -> None:
    """It never says that a commit certainly did not happen."""
    error = KafkaException(KafkaError(KafkaError._FAIL, "told", **flags))
    refusal = confluent_transactions.refusal_of(error)
    assert (refusal.remedy, refusal.is_certain) == (remedy, False)
    assert str(refusal) == "_FAIL: told"
