"""What a broker's answer means for a batch (Kafka's Sender)."""

from __future__ import annotations

import pytest

from cluster.client.producer.outcomes import (
    BatchFacts,
    BatchOutcome,
    BatchStep,
    may_be_stored,
    produce_outcome,
    recorded_outcome,
    reported_code,
)
from cluster.protocol.errors import ErrorCode

FRESH = BatchFacts(2, 0, 5, 10, 1_000, is_idempotent=True)
PLAIN = FRESH._replace(is_idempotent=False)
FIRST = FRESH._replace(is_first_in_flight=True)


def test_success_and_a_duplicate_complete() -> None:
    """A duplicate is a success; 46 tells no offset."""
    assert produce_outcome(ErrorCode.NONE, FRESH) == BatchOutcome(BatchStep.COMPLETE)
    assert produce_outcome(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, PLAIN) == BatchOutcome(
        BatchStep.COMPLETE, is_offset_known=False
    )


@pytest.mark.parametrize("code", [code for code in ErrorCode if code.retriable])
def test_a_retriable_error_is_retried_while_there_are_attempts_and_time(code: ErrorCode) -> None:
    """Retriable: again, until retries or delivery.timeout.ms are used up; M asks for metadata in any case."""
    refresh = code.is_invalid_metadata
    for facts in (FRESH, PLAIN):
        assert produce_outcome(code, facts) == BatchOutcome(BatchStep.RETRY, refresh_metadata=refresh)
        assert produce_outcome(code, facts._replace(attempts=5)) == BatchOutcome(
            BatchStep.FAIL, refresh_metadata=refresh
        )
        assert produce_outcome(code, facts._replace(age_ms=1_000)) == BatchOutcome(
            BatchStep.FAIL, refresh_metadata=refresh
        )


def test_a_batch_that_is_too_large_is_split_down_to_one_record() -> None:
    """10 splits, without counting an attempt; a single record fails."""
    assert produce_outcome(ErrorCode.MESSAGE_TOO_LARGE, FRESH._replace(attempts=5)).step is BatchStep.SPLIT
    assert produce_outcome(ErrorCode.MESSAGE_TOO_LARGE, FRESH._replace(record_count=1)).step is BatchStep.FAIL


def test_a_refused_sequence_restarts_only_for_the_first_in_flight() -> None:
    """45 of a later batch waits for the earlier ones; of the first it shows a gap."""
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce_outcome(code, FRESH) == BatchOutcome(BatchStep.RETRY)
    assert produce_outcome(code, FIRST) == BatchOutcome(BatchStep.RETRY, restart=True)
    assert produce_outcome(code, FIRST._replace(is_overtaken=True)) == BatchOutcome(BatchStep.FAIL)
    assert produce_outcome(code, FIRST._replace(attempts=5)) == BatchOutcome(BatchStep.FAIL)
    assert produce_outcome(code, PLAIN) == BatchOutcome(BatchStep.FAIL)


def test_a_lost_producer_state_is_retried_until_the_log_start_is_known() -> None:
    """59 without a log start offset says nothing; with one, the first in flight restarts."""
    code = ErrorCode.UNKNOWN_PRODUCER_ID
    assert produce_outcome(code, FIRST) == BatchOutcome(BatchStep.RETRY)
    assert produce_outcome(code, FIRST._replace(log_start_offset=7)) == BatchOutcome(BatchStep.RETRY, restart=True)
    assert produce_outcome(code, FRESH._replace(log_start_offset=7)) == BatchOutcome(BatchStep.RETRY)


@pytest.mark.parametrize("number", [29, 17, 87, 32, 76, 47, 21, -1])
def test_what_is_not_retriable_fails(number: int) -> None:
    """A refusal for good fails the batch, idempotent or not."""
    for facts in (FRESH, PLAIN):
        assert produce_outcome(ErrorCode(number), facts) == BatchOutcome(BatchStep.FAIL)


@pytest.mark.parametrize("number", [31, 53, 90, 35])
def test_what_is_fatal_is_fatal_for_an_idempotent_producer_alone(number: int) -> None:
    """Without idempotence the batch fails, and the next may do better."""
    assert produce_outcome(ErrorCode(number), FRESH).step is BatchStep.FATAL
    assert produce_outcome(ErrorCode(number), PLAIN).step is BatchStep.FAIL


def test_a_history_claims_a_failure_only_if_it_is_certain() -> None:
    """Retriable errors, timeouts and unknown trouble are info; a refusal is fail, unless an attempt is open."""
    assert {code for code in ErrorCode if recorded_outcome(code) == "ok"} == {
        ErrorCode.NONE,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
    for code in ErrorCode:
        if recorded_outcome(code) == "fail":
            assert not code.retriable
            assert not may_be_stored(code)
            assert recorded_outcome(reported_code(code, is_doubtful=True)) == "info"
            assert reported_code(code, is_doubtful=False) is code
    for number in (6, 7, 13, 19, 20, -1, 3):
        assert recorded_outcome(ErrorCode(number)) == "info"
    assert recorded_outcome(ErrorCode.INVALID_RECORD) == "fail"
