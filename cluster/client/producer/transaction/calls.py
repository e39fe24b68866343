"""TxnCall: a call of the program that waits for answers, and the one of them that changes the state.

Owns which call must be repeated before another one is made (Kafka's PendingStateTransition). Does not own what the
calls do (``manager.py``), nor how long a program waits. Pure.

A program that stops waiting makes the same call again and waits for the same outcome. Until it has been told about it,
no other call is possible: a commit that may have happened must not be followed by an abort.
"""

from __future__ import annotations

from enum import Enum

from cluster.client.producer.transaction.states import TxnProducerState
from cluster.client.producer.transaction.transaction_errors import IllegalTransactionCall, TransactionError


class TxnOperation(Enum):
    """The calls of a program, with the names under which it knows them."""

    INIT = "init_transactions"
    BEGIN = "begin_transaction"
    SEND = "send"
    SEND_OFFSETS = "send_offsets_to_transaction"
    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


class TxnCall:
    """What has become of a call. ``error`` is what to raise, None for success, once ``is_done``."""

    __slots__ = ("error", "is_done", "operation")

    def __init__(self, operation: TxnOperation) -> None:
        self.operation = operation
        self.is_done = False
        self.error: Exception | None = None

    def __repr__(self) -> str:
        outcome = "waits" if not self.is_done else "done" if self.error is None else f"failed: {self.error}"
        return f"TxnCall({self.operation.value}, {outcome})"


class PendingTransition:
    """The last of init, commit and abort, until the program knows its outcome."""

    __slots__ = ("_call",)

    def __init__(self) -> None:
        self._call: TxnCall | None = None

    def __repr__(self) -> str:
        return f"PendingTransition({self._call!r})"

    @property
    def call(self) -> TxnCall | None:
        return self._call

    def begin(self, operation: TxnOperation) -> TxnCall:
        """A new call, after ``again`` has found none to repeat."""
        self._call = TxnCall(operation)
        return self._call

    def again(self, operation: TxnOperation) -> TxnCall | None:
        """The call that this one repeats, if any. Raises ``IllegalTransactionCall`` if another one is due."""
        if self._call is not None and self._call.operation is not operation:
            raise IllegalTransactionCall(
                f"Cannot attempt operation `{operation.value}` because the previous call to "
                f"`{self._call.operation.value}` timed out and must be retried"
            )
        return self._call

    def acknowledged(self, call: TxnCall) -> None:
        """The program was told the outcome of ``call``."""
        if call is self._call and call.is_done:
            self._call = None


#: What a program has to do first in a state in which it cannot call something else.
_FIRST = {
    TxnProducerState.UNINITIALIZED: f"call {TxnOperation.INIT.value} first",
    TxnProducerState.READY: f"call {TxnOperation.BEGIN.value} first",
    TxnProducerState.IN_TRANSACTION: "commit or abort the open transaction first",
}


def illegal_call(operation: TxnOperation, state: TxnProducerState) -> IllegalTransactionCall:
    """``operation`` does not fit ``state``: what to raise, with what the program has to do first, if that helps."""
    text = f"Cannot call {operation.value} in state {state.name}"
    if operation is TxnOperation.INIT:
        return IllegalTransactionCall(f"{text}: it is called once, before anything else")
    return IllegalTransactionCall(f"{text}: {_FIRST[state]}" if state in _FIRST else text)


def copy_of(error: TransactionError) -> TransactionError:
    """The same to be raised again, without the traceback of the first time."""
    copied = type(error).__new__(type(error))
    copied.__dict__.update(error.__dict__)
    copied.args = error.args
    return copied
