"""What a broker's answer to a batch means: the table of the sender's error handling, as pure functions.

Owns the decision for one batch and what may be said about its records afterwards. Does not own carrying it out
(``sender.py``) nor sequences (``idempotence.py``). Source: Kafka's Sender.

Three rules are stricter than Kafka's, for a record must never be stored twice:

* A batch that fails leaves its partition *unresolved*, whatever the error: those after it are first tried under their
  old numbers, since the failed one may have been stored by an attempt that got no answer.
* Sequences start again only when the *first* batch in flight is refused for its sequence. Kafka asks for a new epoch
  at the first failure, with batches still at the broker. If a later batch was acknowledged, the refused one fails: with
  new numbers it would be stored after its successor, and with the old ones Kafka retries it without success until it
  expires.
* ``may_be_stored`` says which answers leave open whether the batch is in the log; such a batch is never given new
  numbers (``ProducerIdentity.settle``).
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple

from cluster.protocol.errors import ErrorCode


class BatchStep(Enum):
    """What becomes of the batch."""

    COMPLETE = "complete"
    RETRY = "retry"
    SPLIT = "split"
    FAIL = "fail"
    FATAL = "fatal"


class BatchFacts(NamedTuple):
    """What the decision depends on besides the error code.

    ``attempts`` counts the retries so far. ``is_first_in_flight``: every earlier batch of the partition was
    acknowledged or has failed. ``is_overtaken``: a later one was acknowledged. ``log_start_offset`` is the answer's.
    """

    record_count: int
    attempts: int
    retries: int
    age_ms: int
    delivery_timeout_ms: int
    is_idempotent: bool
    is_first_in_flight: bool = False
    is_overtaken: bool = False
    log_start_offset: int = -1


class BatchOutcome(NamedTuple):
    """``restart``: the partition's sequences begin again under a new epoch, as soon as none of it is at a broker.

    ``is_offset_known`` is False for a duplicate of which the broker does not know the offset anymore.
    """

    step: BatchStep
    restart: bool = False
    refresh_metadata: bool = False
    is_offset_known: bool = True


#: Errors after which an idempotent producer cannot continue.
FATAL_ERRORS = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
    }
)

#: Answers that a leader gives before it appends anything: this attempt has stored nothing. All others (a timeout while
#: replicas are waited for, a leader that lost its office with the batch in its log) leave it open.
REFUSALS = FATAL_ERRORS | {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.INVALID_RECORD,
}

_SEQUENCE_ERRORS = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


def produce_outcome(error_code: ErrorCode, facts: BatchFacts) -> BatchOutcome:
    """What to do about a batch of which a broker says ``error_code``.

    A lost connection counts as NETWORK_EXCEPTION, an answer that did not come in time as REQUEST_TIMED_OUT.
    """
    if error_code is ErrorCode.NONE:
        return BatchOutcome(BatchStep.COMPLETE)
    if error_code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return BatchOutcome(BatchStep.COMPLETE, is_offset_known=False)
    refresh = error_code.is_invalid_metadata
    if facts.is_idempotent and error_code in FATAL_ERRORS:
        return BatchOutcome(BatchStep.FATAL)
    if facts.age_ms >= facts.delivery_timeout_ms:
        return BatchOutcome(BatchStep.FAIL, refresh_metadata=refresh)
    if error_code is ErrorCode.MESSAGE_TOO_LARGE and facts.record_count > 1:
        return BatchOutcome(BatchStep.SPLIT)
    if facts.attempts < facts.retries:
        if facts.is_idempotent and error_code in _SEQUENCE_ERRORS:
            if facts.is_first_in_flight and facts.is_overtaken:
                return BatchOutcome(BatchStep.FAIL)
            return BatchOutcome(BatchStep.RETRY, restart=_is_gap(error_code, facts))
        if error_code.retriable:
            return BatchOutcome(BatchStep.RETRY, refresh_metadata=refresh)
    return BatchOutcome(BatchStep.FAIL, refresh_metadata=refresh)


def _is_gap(error_code: ErrorCode, facts: BatchFacts) -> bool:
    """Whether a refused sequence says that one before it is missing for good."""
    if error_code is ErrorCode.UNKNOWN_PRODUCER_ID and facts.log_start_offset == -1:
        return False
    return facts.is_first_in_flight


def may_be_stored(error_code: ErrorCode) -> bool:
    """Whether a batch may be in the log although its attempt ended with ``error_code``."""
    return error_code not in REFUSALS


def reported_code(error_code: ErrorCode, is_doubtful: bool) -> ErrorCode:
    """The code with which a batch fails whose last attempt ended with ``error_code``.

    A refusal does not take back what an earlier attempt may have done (``is_doubtful``): that is a timeout, so that
    the code alone says what is known.
    """
    if is_doubtful and not error_code.retriable and not may_be_stored(error_code):
        return ErrorCode.REQUEST_TIMED_OUT
    return error_code


def recorded_outcome(error_code: ErrorCode) -> Literal["ok", "fail", "info"]:
    """What a history may claim of a record that ended with this code: stored, certainly not, or unknown.

    Retriable errors are always unknown (docs/producer-outcomes.md).
    """
    if error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return "ok"
    if error_code.retriable or may_be_stored(error_code):
        return "info"
    return "fail"
