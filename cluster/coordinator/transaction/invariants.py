"""What always holds of what a coordinator knows, between two of its events.

``validate``:

* ``one-role``: a partition is loading or served, not both, and is one of ``__transaction_state``.
* ``filed-by-id``: a transaction is filed under its id, in the partition that its id belongs to.
* ``room-counted``: what all ids of a partition take, and those of each host, is the sum of what each takes.
* ``stored-states``: no transaction is in a state that is never stored: DEAD or the fence of an epoch.
* ``producer-ids``: producer ids are not negative; epochs are not either, except of an id whose first record is not
  written yet, which is EMPTY; none is above the last one.
* ``partitions-of-open``: a transaction that is not open has no partitions; a start is set in every state but EMPTY.
* ``pending-is-legal``: what is pending can follow the state, and is never the fence of an epoch.
* ``pending-epochs``: what is pending names the current producer and epoch; to EMPTY the next one, or a new producer.
* ``decided-completes``: from the decision on the completion, and nothing else, is pending, under the same outcome.

``validate_successor``, of one id in one epoch of the partition, before and after an event:

* ``epochs-ascend``: under one producer id the epoch never goes back.
* ``decision-stands``: what was decided is completed with the same outcome before anything else happens.
"""

from __future__ import annotations

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.state import (
    IDLE,
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    VALID_PREVIOUS,
    TransactionMetadata,
    TransactionState,
    TransitMetadata,
)
from cluster.coordinator.transaction.txn_quota import Taken
from cluster.invariants import InvariantBroken

_S = TransactionState
_NEVER_STORED = (_S.DEAD, _S.PREPARE_EPOCH_FENCE)
_COMPLETION = {_S.PREPARE_COMMIT: _S.COMPLETE_COMMIT, _S.PREPARE_ABORT: _S.COMPLETE_ABORT}


def validate(coordinator: TransactionCoordinator) -> None:
    """Every partition and every transaction. Raises ``InvariantBroken``."""
    owned = coordinator.owned
    partitions = owned.served.keys() | owned.loading.keys()
    if owned.served.keys() & owned.loading.keys() or not partitions <= set(range(owned.partition_count)):
        raise InvariantBroken(coordinator, "one-role", f"{owned}")
    for partition, served in owned.served.items():
        for transactional_id, metadata in served.transactions.items():
            if metadata.transactional_id != transactional_id or owned.partition_of(transactional_id) != partition:
                raise InvariantBroken(metadata, "filed-by-id", f"under {transactional_id!r} in {partition}")
            validate_metadata(metadata)
        taken = Taken()
        for metadata in served.transactions.values():
            taken.change(None, metadata)
        if (served.taken.ids, served.taken.size_bytes) != (taken.ids, taken.size_bytes):
            raise InvariantBroken(served, "room-counted", f"{served.taken}, not {taken}")


def validate_metadata(metadata: TransactionMetadata) -> None:
    """One transaction by itself. Raises ``InvariantBroken``."""
    state = metadata.state
    if state in _NEVER_STORED:
        raise InvariantBroken(metadata, "stored-states", state.name)
    least_epoch = NO_PRODUCER_EPOCH if state is _S.EMPTY else 0
    if metadata.producer_id < 0 or not least_epoch <= metadata.producer_epoch <= MAX_PRODUCER_EPOCH:
        raise InvariantBroken(metadata, "producer-ids", f"{metadata.producer_id}/{metadata.producer_epoch}")
    has_start = metadata.start_timestamp_ms != NO_TIMESTAMP
    if (state in IDLE and metadata.topic_partitions) or has_start is (state is _S.EMPTY):
        values = f"{sorted(metadata.topic_partitions)}, started at {metadata.start_timestamp_ms}"
        raise InvariantBroken(metadata, "partitions-of-open", values)
    if metadata.pending is not None:
        _validate_pending(metadata, metadata.pending)
    if state in _COMPLETION and (metadata.pending is None or metadata.pending.state is not _COMPLETION[state]):
        raise InvariantBroken(metadata, "decided-completes", f"{metadata.pending}")


def _validate_pending(metadata: TransactionMetadata, pending: TransitMetadata) -> None:
    if metadata.state not in VALID_PREVIOUS[pending.state] or pending.state is _S.PREPARE_EPOCH_FENCE:
        if metadata.state not in _COMPLETION:
            raise InvariantBroken(metadata, "pending-is-legal", pending.state.name)
        return
    epochs = {metadata.producer_epoch}
    if pending.state is _S.EMPTY:
        epochs = {metadata.producer_epoch, metadata.producer_epoch + 1} - {NO_PRODUCER_EPOCH}
    is_same = pending.producer_id == metadata.producer_id and pending.producer_epoch in epochs
    is_rotated = pending.state is _S.EMPTY and pending.producer_epoch == 0
    if not (is_same or is_rotated):
        raise InvariantBroken(metadata, "pending-epochs", f"{pending.producer_id}/{pending.producer_epoch}")


def validate_successor(before: TransactionMetadata, after: TransactionMetadata) -> None:
    """One transaction before and after one event. Raises ``InvariantBroken``."""
    if before.producer_id == after.producer_id and after.producer_epoch < before.producer_epoch:
        raise InvariantBroken(after, "epochs-ascend", f"{before.producer_epoch}, then {after.producer_epoch}")
    if before.state in _COMPLETION and after.state not in (before.state, _COMPLETION[before.state]):
        raise InvariantBroken(after, "decision-stands", f"{before.state.name}, then {after.state.name}")
