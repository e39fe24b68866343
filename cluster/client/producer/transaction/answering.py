"""What an answer changes: the step of its code, carried out on the ledger (the handlers of Kafka's TransactionManager).

Owns the consequences of answers. Does not own what a code means (``answers.py``), nor what is sent next
(``manager.py``). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client.producer.transaction.answers import TxnStep, decisive_code, is_undecided, txn_step
from cluster.client.producer.transaction.ledger import TransactionLedger
from cluster.client.producer.transaction.request_queue import QueuedTxnRequest
from cluster.client.producer.transaction.states import TxnProducerState
from cluster.client.producer.transaction.transaction_errors import (
    TransactionAborted,
    TransactionError,
    abortable,
    fatal_to_transactions,
    not_initialized,
)
from cluster.client.producer.transaction.txn_actions import UseTxnIdentity
from cluster.client.producer.transaction.txn_requests import (
    ADDITIONS,
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    CoordinatorKind,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnIdentity,
    TxnRequest,
)
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: The previous transaction of the producer is being completed: the first addition of the next one asks again soon.
ADD_PARTITIONS_RETRY_BACKOFF_MS = 20
_S = TxnProducerState
_API_NAMES: Mapping[type[TxnRequest], str] = {
    FindTxnCoordinator: "FindCoordinator",
    InitTxnProducerId: "InitProducerId",
    AddTxnPartitions: "AddPartitionsToTxn",
    AddTxnOffsets: "AddOffsetsToTxn",
    CommitTxnOffsets: "TxnOffsetCommit",
    EndTransaction: "EndTxn",
}


def take_answer(ledger: TransactionLedger, ended: QueuedTxnRequest, answer: TxnAnswer, now_ms: int) -> None:
    """The request in flight has ended like this."""
    if ledger.state is _S.FATAL_ERROR:
        return
    request = ended.request
    code = _decisive(ended, answer)
    step = txn_step(type(request), code)
    if is_undecided(code):
        ledger.is_in_doubt |= isinstance(request, AddTxnPartitions | AddTxnOffsets)
        ledger.is_commit_lost |= isinstance(request, EndTransaction) and request.commit
    if code is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
        ledger.is_unknown_there = True
    if isinstance(request, CommitTxnOffsets) and answer.partitions is not None:
        _keep_uncommitted(ended, answer)
    if step is TxnStep.DONE:
        _done(ledger, ended, answer)
    elif step in (TxnStep.RETRY, TxnStep.FIND_AND_RETRY):
        if step is TxnStep.FIND_AND_RETRY and request.coordinator is not None:
            ledger.coordinators.pop(request.coordinator, None)
        _again(ledger, ended, code, now_ms)
    else:
        _failed(ledger, ended, code, step)


def _decisive(ended: QueuedTxnRequest, answer: TxnAnswer) -> ErrorCode:
    """One code for the whole answer. A partition that it leaves out is as unknown as a lost answer."""
    if answer.error_code is not ErrorCode.NONE or answer.partitions is None:
        return answer.error_code
    request = ended.request
    codes = list(answer.partitions.values())
    asked: set[TopicPartition] = set()
    if isinstance(request, AddTxnPartitions):
        asked.update(request.topic_partitions)
    elif isinstance(request, CommitTxnOffsets):
        asked.update(request.offsets)
    if asked - answer.partitions.keys():
        codes.append(ErrorCode.REQUEST_TIMED_OUT)
    return decisive_code(type(request), codes)


def _keep_uncommitted(ended: QueuedTxnRequest, answer: TxnAnswer) -> None:
    """What was committed is not asked for again."""
    request, codes = ended.request, answer.partitions or {}
    if isinstance(request, CommitTxnOffsets):
        rest = {each: offset for each, offset in request.offsets.items() if codes.get(each) is not ErrorCode.NONE}
        ended.request = CommitTxnOffsets(request.identity, request.group, rest)


def _done(ledger: TransactionLedger, ended: QueuedTxnRequest, answer: TxnAnswer) -> None:
    request = ended.request
    if isinstance(request, FindTxnCoordinator):
        if request.key.kind is CoordinatorKind.GROUP:
            # One group at a time: those of the past are not kept.
            for key in [key for key in ledger.coordinators if key.kind is CoordinatorKind.GROUP]:
                del ledger.coordinators[key]
        ledger.coordinators[request.key] = answer.node
    elif isinstance(request, InitTxnProducerId):
        transactional_id = ledger.identity.transactional_id
        ledger.identity = TxnIdentity(transactional_id, answer.producer_id, answer.producer_epoch)
        ledger.act(UseTxnIdentity(answer.producer_id, answer.producer_epoch))
        ledger.transition_to(_S.READY)
        ledger.finish(ended.call)
    elif isinstance(request, AddTxnPartitions):
        ledger.partitions.confirm(request.topic_partitions)
        ledger.is_started = True
    elif isinstance(request, AddTxnOffsets):
        ledger.is_started = True
        if _takes_additions(ledger):
            ledger.queue.add(CommitTxnOffsets(request.identity, request.group, request.offsets), ended.call)
        else:
            ledger.finish(ended.call, ledger.error or TransactionAborted())
    elif isinstance(request, CommitTxnOffsets):
        ledger.finish(ended.call)
    else:
        ledger.complete(ended.call)


def _takes_additions(ledger: TransactionLedger) -> bool:
    return ledger.state in (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION)


def _again(ledger: TransactionLedger, ended: QueuedTxnRequest, code: ErrorCode, now_ms: int) -> None:
    request = ended.request
    is_for_group = isinstance(request, FindTxnCoordinator) and request.key.kind is CoordinatorKind.GROUP
    if (isinstance(request, ADDITIONS) or is_for_group) and not _takes_additions(ledger):
        ledger.finish(ended.call, ledger.error or TransactionAborted())
        return
    is_first = isinstance(request, AddTxnPartitions) and not ledger.partitions.added
    is_completing = is_first and code is ErrorCode.CONCURRENT_TRANSACTIONS
    ledger.queue.again(ended, now_ms, ADD_PARTITIONS_RETRY_BACKOFF_MS if is_completing else None)


def _failed(ledger: TransactionLedger, ended: QueuedTxnRequest, code: ErrorCode, step: TxnStep) -> None:
    """A refusal that is not to be retried."""
    request = ended.request
    what = f"{_API_NAMES[type(request)]} was refused"
    if isinstance(request, AddTxnPartitions):
        ledger.partitions.refuse(request.topic_partitions)
        names = ", ".join(f"{topic}-{partition}" for topic, partition in request.topic_partitions)
        what = f"{names} could not be added to the transaction"
    if code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        what = f"transaction.timeout.ms {ledger.timeout_ms} is more than the brokers' transaction.max.timeout.ms"
    if isinstance(request, EndTransaction) and not request.commit and _has_nothing_to_abort(ledger, code, step):
        ledger.is_bump_required |= step is TxnStep.BUMP
        ledger.complete(ended.call)
        return
    may_be_committed = ledger.may_be_committed
    if step is TxnStep.REINITIALIZE:
        ledger.reinitialize(not_initialized(code, what))
        return
    if step is TxnStep.FATAL or (step is TxnStep.BUMP and not ledger.can_bump_epoch) or _cannot_abort(ledger, ended):
        fatal = fatal_to_transactions(code, what, may_be_committed=may_be_committed)
        ledger.finish(ended.call, fatal)
        ledger.fail_fatal(fatal)
        return
    error: TransactionError = abortable(code, what, may_be_committed=may_be_committed)
    if ledger.state is _S.ABORTABLE_ERROR and ledger.error is not None:
        error = ledger.error
    ledger.finish(ended.call, error)
    ledger.fail_abortable(error, bump=step is TxnStep.BUMP)


def _has_nothing_to_abort(ledger: TransactionLedger, code: ErrorCode, step: TxnStep) -> bool:
    """Whether the refusal of an abort says that there is no such transaction."""
    if step is TxnStep.BUMP:
        return ledger.can_bump_epoch
    return code is ErrorCode.INVALID_TXN_STATE and not ledger.is_started


def _cannot_abort(ledger: TransactionLedger, ended: QueuedTxnRequest) -> bool:
    """Whether what was refused is the abort itself, or the way to it: to abort again would end the same."""
    request = ended.request
    if ledger.state is not _S.ABORTING_TRANSACTION or isinstance(request, ADDITIONS):
        return False
    return not (isinstance(request, FindTxnCoordinator) and request.key.kind is CoordinatorKind.GROUP)
