"""What a coordinator has no room for is refused with an error that clients retry; what it has may always shrink."""

from __future__ import annotations

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.invariants import validate
from cluster.coordinator.transaction.ownership import TransactionRoom, metadata_bytes
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.transaction.situations import (
    EPOCH,
    NOW,
    PID,
    TIMEOUT_MS,
    S,
    append_of,
    code_of,
    metadata_in,
)

FULL = ErrorCode.THROTTLING_QUOTA_EXCEEDED
MANY = frozenset((f"topic-{number}", 0) for number in range(100))


def coordinator(room: TransactionRoom, *known):
    made = TransactionCoordinator(1, 900_000, 1000, room)
    made.elected(0, 1)
    made.loaded(0, 1, {each.transactional_id: each for each in known}, NOW)
    return made


def init(made: TransactionCoordinator, transactional_id: str):
    return made.init_producer_id(transactional_id, TIMEOUT_MS, None, lambda: 100, NOW)


def test_more_ids_than_there_may_be():
    """A new one is refused until another is gone; those that are known are served."""
    made = coordinator(TransactionRoom(most_ids=1), metadata_in(S.EMPTY))
    assert code_of(init(made, "another")) is FULL
    assert init(made, "id").answer is None
    made = coordinator(TransactionRoom(most_ids=1), metadata_in(S.COMPLETE_ABORT))
    expiring = made.expire_idle(made.owned.all_ids(), NOW + 10, idle_ms=5)
    made.appended(append_of(expiring), ErrorCode.NONE, NOW)
    assert init(made, "another").answer is None
    validate(made)


def test_more_partitions_than_there_is_room_for():
    """The transaction that would grow is refused; it is as it was, and can be ended."""
    known = metadata_in(S.ONGOING)
    made = coordinator(TransactionRoom(most_bytes=metadata_bytes(known) + 300), known)
    assert code_of(made.add_partitions("id", PID, EPOCH, MANY, NOW)) is FULL
    assert made.end_txn("id", PID, EPOCH, NOW, commit=True).answer is None
    validate(made)


def test_a_transaction_has_so_many_partitions_and_no_more():
    """Each change of it is a record that names them all. What it has may be added again, and it can be ended."""
    made = coordinator(TransactionRoom(most_partitions=len(MANY)), metadata_in(S.EMPTY))
    made.appended(append_of(made.add_partitions("id", PID, EPOCH, MANY, NOW)), ErrorCode.NONE, NOW)
    for refused in (
        made.add_partitions("id", PID, EPOCH, frozenset({("one more", 0)}), NOW),
        made.add_offsets("id", PID, EPOCH, "group", 1, NOW),
    ):
        assert code_of(refused) is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert code_of(made.add_partitions("id", PID, EPOCH, MANY, NOW)) is ErrorCode.NONE
    assert made.end_txn("id", PID, EPOCH, NOW, commit=True).answer is None
    validate(made)


def test_what_is_loaded_is_kept():
    """A failover forgets nothing for lack of room."""
    made = coordinator(TransactionRoom(0, 0), metadata_in(S.ONGOING))
    assert [*made.owned.served[0].transactions] == ["id"]
    assert made.end_txn("id", PID, EPOCH, NOW, commit=False).answer is None
    validate(made)
