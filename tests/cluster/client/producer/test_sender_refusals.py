"""What records are told of that a broker refused: which of them (KIP-467), and whether they may be stored."""

from __future__ import annotations

import pytest

from cluster.client.producer.actions import FailBatch, PartitionResult, SendProduce
from cluster.client.producer.delivery import InvalidRecord, ProduceError
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import a_batch
from tests.cluster.client.producer.sender_bench import BACKOFF_MS, Bench, some


def test_a_refusal_after_an_attempt_without_answer_is_reported_as_unknown() -> None:
    """The first attempt may have stored it: the code must not claim that it did not."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch())
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.REQUEST_TIMED_OUT)
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    bench.answer(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    (failed,) = some(FailBatch, bench.tick())
    assert failed.error.error_code is ErrorCode.REQUEST_TIMED_OUT
    assert "TOPIC_AUTHORIZATION_FAILED" in str(failed.error)


def refusal(bench: Bench, *record_errors: tuple[int, str | None], message: str | None = "bad times") -> FailBatch:
    """What becomes of three records of which the broker refuses some for their time."""
    (request,) = some(SendProduce, bench.tick(bench.now_ms + BACKOFF_MS))
    result = PartitionResult(ErrorCode.INVALID_TIMESTAMP, error_message=message, record_errors=record_errors)
    bench.core.produced(1, request.request_id, {("t", 0): result}, bench.now_ms)
    (failed,) = some(FailBatch, bench.tick())
    return failed


def told(failed: FailBatch) -> list[tuple[type[ProduceError], str]]:
    """What each of three records is told."""
    batch, error, record_errors = failed
    batch.fail(error, record_errors)
    errors = [batch.delivery.outcome(index)[2] for index in range(3)]
    return [(type(each), str(each)) for each in errors if each is not None]


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_records_that_the_broker_names_fail_with_their_own_text(is_idempotent: bool) -> None:
    """KIP-467: or with the batch's text; the others are told that they are not written because of these."""
    bench = Bench({0: (1, 0)}, is_idempotent=is_idempotent)
    bench.start(1)
    bench.put(a_batch(records=3))
    named = refusal(bench, (0, "too old"), (2, None), (2, "no key"))
    others = "not written, for 2 other record(s) of the 3 in the batch for t-0 were refused: bad times"
    assert told(named) == [
        (InvalidRecord, "INVALID_RECORD: too old"),
        (ProduceError, f"INVALID_TIMESTAMP: {others}"),
        (InvalidRecord, "INVALID_RECORD: bad times; no key"),
    ]
    bench.put(a_batch(records=3))
    (_first, _second, silent) = told(refusal(bench, (2, None), message=None))
    # The only one: then the batch's code is surely its own.
    assert silent == (InvalidRecord, "INVALID_TIMESTAMP: the broker refused this record, and does not say why")
    bench.put(a_batch(records=3))
    unnamed = refusal(bench)
    assert unnamed.record_errors is None
    assert (
        told(unnamed)
        == [(ProduceError, "INVALID_TIMESTAMP: 3 record(s) for t-0 failed after 1 attempt(s): bad times")] * 3
    )


def test_a_record_that_is_named_may_be_stored_after_an_attempt_without_answer() -> None:
    """No record's error claims more than that of its batch: the code is a timeout, the text says both."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch(records=3))
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.REQUEST_TIMED_OUT)
    first, second, third = told(refusal(bench, (0, "too old"), (7, "none of ours")))
    assert first == (InvalidRecord, "REQUEST_TIMED_OUT: too old (it may be stored by an attempt without answer)")
    assert second == third
    assert second[0] is ProduceError
    assert "REQUEST_TIMED_OUT: 3 record(s) for t-0 may be stored" in second[1]


def test_the_parts_of_a_batch_that_may_be_stored_may_be_stored() -> None:
    """An attempt without answer counts for every part."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch(records=2))
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.REQUEST_TIMED_OUT)
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    bench.answer(request, ErrorCode.MESSAGE_TOO_LARGE)
    one, two = some(SendProduce, bench.tick())
    bench.answer(one, ErrorCode.INVALID_RECORD)
    bench.answer(two, ErrorCode.INVALID_RECORD)
    failed = some(FailBatch, bench.tick())
    assert [each.error.error_code for each in failed] == [ErrorCode.REQUEST_TIMED_OUT] * 2
