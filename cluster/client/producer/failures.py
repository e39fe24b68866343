"""What a program is told about a batch that failed. Owns the texts; what is a failure is decided elsewhere.

A record may be stored although its batch failed. Then the error code is a timeout, whatever the last attempt ended
with, so that the code alone says what is known (``outcomes.recorded_outcome``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.client.producer.delivery import (
    FatalProducerError,
    InvalidRecord,
    ProduceError,
    RecordErrors,
    RecordTooLarge,
)
from cluster.client.producer.outcomes import recorded_outcome, reported_code
from cluster.client.producer.transaction.transaction_errors import TransactionError
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.client.producer.actions import PartitionResult
    from cluster.client.producer.batch import ProducerBatch


def refused(
    batch: ProducerBatch, result: PartitionResult, is_doubtful: bool
) -> tuple[ProduceError, RecordErrors | None]:
    """The broker said no, or too often "not now"; ``is_doubtful``: an earlier attempt may have stored the batch.

    An error for the batch, and those of the records that the broker finds fault with, by index, if it names any.
    """
    code = reported_code(result.error_code, is_doubtful)
    if not result.record_errors:
        return _of_batch(batch, result, code), None
    texts = _texts_by_index(result)
    if recorded_outcome(code) != "fail":
        doubt = " (it may be stored by an attempt without answer)"
        return _of_batch(batch, result, code), {index: InvalidRecord(code, text + doubt) for index, text in texts}
    error = ProduceError(
        code,
        f"not written, for {len(texts)} other record(s) of the {batch.record_count} in the batch "
        f"for {batch.topic}-{batch.partition} were refused{_said(result)}",
    )
    # One code stands for all that is wrong in the batch: it is surely that of a record only if no other is named.
    code_of_each = code if len(texts) == 1 else ErrorCode.INVALID_RECORD
    return error, {index: InvalidRecord(code_of_each, text) for index, text in texts}


def _texts_by_index(result: PartitionResult) -> list[tuple[int, str]]:
    """What is wrong with each record that is named: its own text, or else the batch's. More than one are joined."""
    otherwise = result.error_message or "the broker refused this record, and does not say why"
    texts: dict[int, list[str]] = {}
    for index, text in result.record_errors:
        texts.setdefault(index, []).append(text or otherwise)
    return [(index, "; ".join(each)) for index, each in texts.items()]


def _of_batch(batch: ProducerBatch, result: PartitionResult, code: ErrorCode) -> ProduceError:
    records = _records(batch)
    said = _said(result)
    if code is not result.error_code:
        return ProduceError(
            code,
            f"{records} may be stored by an attempt without answer; the last ended with {result.error_code.name}{said}",
        )
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        return RecordTooLarge(f"{records} of {batch.size_bytes} bytes are more than the broker takes{said}")
    return ProduceError(code, f"{records} failed after {batch.attempts + 1} attempt(s){said}")


def not_sent_again(batch: ProducerBatch) -> ProduceError:
    """One before the batch is missing, and it could be stored twice with new sequence numbers."""
    return ProduceError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"{_records(batch)} may be stored by an attempt without answer, and are not sent again: "
        "records before them are missing, and with new sequence numbers they could be stored twice",
    )


def fatal(error_code: ErrorCode, is_doubtful: bool) -> FatalProducerError:
    """The producer cannot continue; ``is_doubtful``: the batch may be stored."""
    text = f"this producer cannot continue ({error_code.name}); open another one"
    return FatalProducerError(reported_code(error_code, is_doubtful), text)


def dropped(error: TransactionError, is_doubtful: bool) -> TransactionError:
    """The transaction does not continue; ``is_doubtful``: the batch may be stored, to be aborted with the others."""
    if reported_code(error.error_code, is_doubtful) is error.error_code:
        return error
    return type(error)(ErrorCode.REQUEST_TIMED_OUT, f"may be stored, in a transaction that has failed ({error})")


def _said(result: PartitionResult) -> str:
    return f": {result.error_message}" if result.error_message else ""


def _records(batch: ProducerBatch) -> str:
    return f"{batch.record_count} record(s) for {batch.topic}-{batch.partition}"
