"""What the sender wants done: the actions that ``SenderCore.tick`` returns, in order, for the thread that does I/O.

Owns their shapes. Does not own when they are asked for, nor how they are carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch
    from cluster.client.producer.delivery import ProduceError, RecordErrors
    from cluster.client.producer.transaction.txn_actions import FinishTxnCall, SendTxnRequest
    from cluster.protocol.errors import ErrorCode
    from cluster.topic_partition import TopicPartition


class Connect(NamedTuple):
    """Open a connection to ``node``, at its own pace. The end of the attempt is ``connected`` or ``disconnected``."""

    node: int


class SendProduce(NamedTuple):
    """Send one Produce request with the batches' ``build()``; its end is ``SenderCore.produced``.

    With acks 0 no answer comes: ``produced`` is called with no results once the request is written.
    """

    node: int
    request_id: int
    acks: int
    timeout_ms: int
    batches: tuple[ProducerBatch, ...]


class AskProducerId(NamedTuple):
    """Send InitProducerId to ``node``; its end is ``SenderCore.producer_id``."""

    node: int


class RefreshMetadata(NamedTuple):
    """Ask for metadata now: of ``topics``, which may be new; () stands for all that is in use."""

    topics: tuple[str, ...]


class CompleteBatch(NamedTuple):
    """Call ``batch.complete``, without the lock, for it runs callbacks; then give its ``memory_bytes`` back."""

    batch: ProducerBatch
    base_offset: int
    log_append_time_ms: int


class FailBatch(NamedTuple):
    """Call ``batch.fail`` with both errors, without the lock; then give its ``memory_bytes`` back."""

    batch: ProducerBatch
    error: ProduceError
    record_errors: RecordErrors | None = None


class BatchSplit(NamedTuple):
    """``batch`` was too large for the broker, and is queued in parts: what was expected of compression is forgotten."""

    batch: ProducerBatch


class WakeAt(NamedTuple):
    """Call ``tick`` again at this time if no event comes before. The last action of a tick, if there is one."""

    at_ms: int


Action: TypeAlias = (
    "Connect | SendProduce | AskProducerId | RefreshMetadata | CompleteBatch | FailBatch | BatchSplit | WakeAt"
    " | SendTxnRequest | FinishTxnCall"
)


#: What a broker says about single records of a batch that it refused: (index in the batch, text).
RecordTexts = tuple[tuple[int, str | None], ...]


class PartitionResult(NamedTuple):
    """One partition of a Produce response. Absent fields of old versions are -1, None and ()."""

    error_code: ErrorCode
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: RecordTexts = ()


ProduceResults = dict["TopicPartition", PartitionResult]
