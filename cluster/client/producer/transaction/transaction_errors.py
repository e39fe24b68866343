"""What a program is told when its transaction cannot continue. Owns the exceptions and their texts.

The class says what to do next:

* ``TransactionTimeout``: call the same again, and wait for the same outcome.
* ``AbortableTransactionError``: call ``abort_transaction``; then another transaction may begin.
* ``FatalTransactionError``, and of these ``ProducerFenced``: close the producer.
* ``TransactionError`` alone: ``init_transactions`` was refused, and may be called again.
"""

from __future__ import annotations

from cluster.client.producer.delivery import FatalProducerError, ProduceError
from cluster.protocol.errors import ErrorCode


class TransactionError(ProduceError):
    """A call failed, or cannot be made in the state that an error led to.

    ``may_be_committed``: the commit was asked for, and no answer says that it did not happen.
    """

    #: False if ``abort_transaction`` makes the producer usable again.
    is_fatal = False

    def __init__(self, error_code: ErrorCode, message: str, *, may_be_committed: bool = False) -> None:
        super().__init__(error_code, message)
        self.may_be_committed = may_be_committed

    @property
    def retriable(self) -> bool:
        """Never: what is retriable was retried."""
        return False


class AbortableTransactionError(TransactionError):
    """The transaction has to be aborted: Kafka's TransactionAbortableException, CommitFailedException and others."""


class FatalTransactionError(TransactionError, FatalProducerError):
    """This producer can do nothing anymore; a new one with the same transactional id may."""

    is_fatal = True


class ProducerFenced(FatalTransactionError):
    """Another producer has this transactional id now, or the transaction timed out: Kafka's ProducerFencedException."""


class TransactionClosed(FatalTransactionError):
    """The program closed the producer before the call had its outcome."""


class TransactionAborted(TransactionError):
    """The program aborted the transaction that this record or call belonged to: Kafka's TransactionAbortedException."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, "")
        # No broker said so.
        self.args = ("Failing batch since transaction was aborted",)


class TransactionTimeout(TransactionError, TimeoutError):
    """No outcome within max.block.ms: Kafka's TimeoutException. The call is still under way, and has to be repeated
    before any other.
    """

    @property
    def retriable(self) -> bool:
        """Always: the same call again waits for the same outcome."""
        return True

    @classmethod
    def of(cls, operation: str, waited_ms: int, what: str = "") -> TransactionTimeout:
        """``operation`` has no outcome after ``waited_ms``; ``what`` is known of the reason."""
        again = f"call {operation} again to wait for its outcome"
        text = f"Timeout expired after {waited_ms}ms while awaiting {operation}; {again}{what}"
        return cls(ErrorCode.REQUEST_TIMED_OUT, text)


class IllegalTransactionCall(RuntimeError):
    """A call that does not fit the state: a mistake of the program (Kafka's IllegalStateException)."""


def abortable(error_code: ErrorCode, what: str, *, may_be_committed: bool = False) -> AbortableTransactionError:
    """The transaction has to be aborted; then another one may begin."""
    text = f"{what}; abort the transaction"
    return AbortableTransactionError(error_code, text, may_be_committed=may_be_committed)


def fatal_to_transactions(error_code: ErrorCode, what: str, *, may_be_committed: bool = False) -> FatalTransactionError:
    """This producer can do nothing anymore."""
    if error_code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        text = "a newer producer has the same transactional.id, or the transaction timed out; close this producer"
        return ProducerFenced(ErrorCode.PRODUCER_FENCED, text, may_be_committed=may_be_committed)
    text = f"{what}; this producer cannot continue, open another one"
    return FatalTransactionError(error_code, text, may_be_committed=may_be_committed)


def not_initialized(error_code: ErrorCode, what: str) -> TransactionError:
    """There is no producer id; ``init_transactions`` may be called again."""
    return TransactionError(error_code, f"{what}; call init_transactions again when the cause is remedied")


def closed(*, may_be_committed: bool) -> TransactionClosed:
    """The program closed the producer before the call had its outcome. Kafka has no code for it."""
    error = TransactionClosed(ErrorCode.UNKNOWN_SERVER_ERROR, "", may_be_committed=may_be_committed)
    error.args = ("Producer is closed forcefully.",)
    return error
