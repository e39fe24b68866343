"""What a program is told when its transaction cannot continue. Owns the exceptions and their texts."""

from __future__ import annotations

from cluster.client.producer.delivery import ProduceError
from cluster.protocol.errors import ErrorCode


class TransactionError(ProduceError):
    """A call failed, or cannot be made in the state that an error led to.

    ``is_fatal`` is False if ``abort_transaction`` makes the producer usable again. ``may_be_committed``: the commit was
    asked for, and no answer says that it did not happen.
    """

    def __init__(
        self, error_code: ErrorCode, message: str, *, is_fatal: bool = False, may_be_committed: bool = False
    ) -> None:
        super().__init__(error_code, message)
        self.is_fatal = is_fatal
        self.may_be_committed = may_be_committed

    @property
    def retriable(self) -> bool:
        """Never: what is retriable was retried."""
        return False


class TxnProducerFenced(TransactionError):
    """Another producer has this transactional id now, or the transaction timed out: Kafka's ProducerFencedException."""


class TransactionAborted(TransactionError):
    """The program aborted the transaction that this record or call belonged to: Kafka's TransactionAbortedException."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, "")
        # No broker said so.
        self.args = ("Failing batch since transaction was aborted",)


class IllegalTransactionCall(RuntimeError):
    """A call that does not fit the state: a mistake of the program (Kafka's IllegalStateException)."""


def abortable(error_code: ErrorCode, what: str, *, may_be_committed: bool = False) -> TransactionError:
    """The transaction has to be aborted; then another one may begin."""
    return TransactionError(error_code, f"{what}; abort the transaction", may_be_committed=may_be_committed)


def fatal_to_transactions(error_code: ErrorCode, what: str, *, may_be_committed: bool = False) -> TransactionError:
    """This producer can do nothing anymore."""
    if error_code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        text = "a newer producer has the same transactional.id, or the transaction timed out; close this producer"
        return TxnProducerFenced(ErrorCode.PRODUCER_FENCED, text, is_fatal=True, may_be_committed=may_be_committed)
    text = f"{what}; this producer cannot continue, open another one"
    return TransactionError(error_code, text, is_fatal=True, may_be_committed=may_be_committed)


def not_initialized(error_code: ErrorCode, what: str) -> TransactionError:
    """There is no producer id; ``init_transactions`` may be called again."""
    return TransactionError(error_code, f"{what}; call init_transactions again when the cause is remedied")


def closed(*, may_be_committed: bool) -> TransactionError:
    """The program closed the producer before the call had its outcome. Kafka has no code for it."""
    error = TransactionError(ErrorCode.UNKNOWN_SERVER_ERROR, "", is_fatal=True, may_be_committed=may_be_committed)
    error.args = ("Producer is closed forcefully.",)
    return error
