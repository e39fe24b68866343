"""What a coordinator has no room for is refused with an error that clients retry; what it has may always shrink."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.invariants import validate
from cluster.coordinator.transaction.txn_quota import (
    ALWAYS_PARTITIONS,
    Taken,
    TransactionQuota,
    check_room,
    metadata_bytes,
)
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
CROWD, OTHER = "10.0.0.9", "10.0.0.10"


def coordinator(room: TransactionQuota, *known):
    made = TransactionCoordinator(1, 900_000, 1000, room)
    made.elected(0, 1)
    made.loaded(0, 1, {each.transactional_id: each for each in known}, NOW)
    return made


def init(made: TransactionCoordinator, transactional_id: str, host: str = ""):
    return made.init_producer_id(transactional_id, TIMEOUT_MS, None, lambda: 100, NOW, host)


def make(made: TransactionCoordinator, transactional_id: str, host: str) -> bool:
    """Whether there was room for a new id."""
    found = init(made, transactional_id, host)
    if found.answer is None:
        made.appended(append_of(found), ErrorCode.NONE, NOW)
    return found.answer is None


def add(made: TransactionCoordinator, transactional_id: str, count: int, host: str) -> ErrorCode:
    partitions = frozenset(("t", number) for number in range(count))
    found = made.add_partitions(transactional_id, 100, 0, partitions, NOW, host)
    if found.answer is None:
        made.appended(append_of(found), ErrorCode.NONE, NOW)
        return ErrorCode.NONE
    return code_of(found)


def test_more_ids_than_there_may_be():
    """A new one is refused until another is gone; those that are known are served."""
    made = coordinator(TransactionQuota(most_ids=1), metadata_in(S.EMPTY))
    assert code_of(init(made, "another")) is FULL
    assert init(made, "id").answer is None
    made = coordinator(TransactionQuota(most_ids=1), metadata_in(S.COMPLETE_ABORT))
    expiring = made.expire_idle(made.owned.all_ids(), NOW + 10, idle_ms=5)
    made.appended(append_of(expiring), ErrorCode.NONE, NOW)
    assert init(made, "another").answer is None
    validate(made)


def test_more_partitions_than_there_is_room_for():
    """The transaction that would grow is refused; it is as it was, and can be ended."""
    known = metadata_in(S.ONGOING)
    made = coordinator(TransactionQuota(most_bytes=metadata_bytes(known) + 300), known)
    assert code_of(made.add_partitions("id", PID, EPOCH, MANY, NOW)) is FULL
    assert made.end_txn("id", PID, EPOCH, NOW, commit=True).answer is None
    validate(made)


def test_a_transaction_has_so_many_partitions_and_no_more():
    """Each change of it is a record that names them all. What it has may be added again, and it can be ended."""
    made = coordinator(TransactionQuota(most_partitions=len(MANY)), metadata_in(S.EMPTY))
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
    made = coordinator(TransactionQuota(0, 0), metadata_in(S.ONGOING))
    assert [*made.owned.served[0].transactions] == ["id"]
    assert made.end_txn("id", PID, EPOCH, NOW, commit=False).answer is None
    validate(made)


def test_one_host_cannot_take_all_ids():
    """The last eighth is for hosts that have a sixteenth at most."""
    made = coordinator(TransactionQuota(most_ids=32))
    assert [make(made, f"made-up-{number}", CROWD) for number in range(40)] == [True] * 28 + [False] * 12
    assert [make(made, f"other-{number}", OTHER) for number in range(3)] == [True, True, False]
    assert make(made, "made-up-0", CROWD), "it is known"
    validate(made)


def test_one_host_cannot_take_all_bytes():
    """With transactions of very many partitions: the ids of others may be made, and their transactions begin."""
    made = coordinator(TransactionQuota(most_bytes=1_600_000))
    assert make(made, "known", OTHER)
    for number in range(100):
        if make(made, f"made-up-{number}", CROWD):
            add(made, f"made-up-{number}", 500, CROWD)
    assert add(made, "made-up-0", 2000, CROWD) is FULL
    assert add(made, "known", 100, OTHER) is ErrorCode.NONE
    assert make(made, "new", OTHER) and add(made, "new", 100, OTHER) is ErrorCode.NONE
    validate(made)


@given(
    st.lists(
        st.tuples(st.sampled_from([CROWD, OTHER, "", "c", "d"]), st.integers(0, 60), st.integers(0, 90)), max_size=60
    )
)
def test_a_known_id_may_always_have_a_few_partitions(events: list[tuple[str, int, int]]) -> None:
    """Whoever has taken the room, also from the same host. What is taken stays bounded, and is counted right."""
    most = 40_000
    made = coordinator(TransactionQuota(most_ids=16, most_bytes=most))
    known = [f"id-{number}" for number in range(8) if make(made, f"id-{number}", OTHER)]
    assert known
    for host, number, count in events:
        if count:
            add(made, f"id-{number % 16}", count, host)
        elif f"id-{number}" not in made.owned.served[0].transactions:
            make(made, f"id-{number}", host)
        validate(made)
    for each in known:
        before = made.owned.served[0].transactions[each]
        count = max(len(before.topic_partitions), ALWAYS_PARTITIONS)
        assert add(made, each, count, OTHER) is ErrorCode.NONE
    [taken] = made.owned.taken()
    extra = 16 * ALWAYS_PARTITIONS * (metadata_bytes(metadata_of(1)) - metadata_bytes(metadata_of(0)))
    assert taken.ids.total() <= 16 and taken.size_bytes.total() <= most + extra


def metadata_of(count: int):
    return replace(metadata_in(S.ONGOING), topic_partitions=frozenset(("t", number) for number in range(count)))


def forgotten(made: TransactionCoordinator, hosts: Set[str], *, only_unused: bool) -> set[str]:
    """The ids that make room for others of these hosts."""
    found = made.make_room(made.owned.all_ids(), NOW + 10, 5, hosts, only_unused=only_unused)
    return {append.transactional_id for append in found.effects}


def test_a_crowd_has_no_ids_of_others_forgotten():
    """However idle they are: only its own, and those of which no host is known. For another host all make room."""
    made = coordinator(TransactionQuota(most_ids=32), replace(metadata_in(S.EMPTY), transactional_id="loaded"))
    for number in range(4):
        assert make(made, f"made-up-{number}", CROWD)
    assert make(made, "other", OTHER)
    of_crowd = {f"made-up-{number}" for number in range(4)}
    assert forgotten(made, {CROWD}, only_unused=True) == of_crowd
    made = coordinator(TransactionQuota(most_ids=32), replace(metadata_in(S.EMPTY), transactional_id="loaded"))
    assert make(made, "other", OTHER)
    for number in range(4):
        assert make(made, f"made-up-{number}", CROWD)
    assert forgotten(made, {CROWD, OTHER}, only_unused=False) == {"loaded", "other", *of_crowd}


def test_who_uses_an_id_that_was_loaded_is_its_host():
    """The first one; it was nobody's before."""
    made = coordinator(TransactionQuota(), metadata_in(S.ONGOING))
    assert made.owned.served[0].taken.ids == {"": 1}
    made.appended(append_of(made.add_partitions("id", PID, EPOCH, MANY, NOW, OTHER)), ErrorCode.NONE, NOW)
    assert made.owned.served[0].taken.ids == {OTHER: 1}
    validate(made)


def test_growth_alone_needs_room():
    """What is taken already, however much, is not asked for again."""
    taken, large = Taken(), metadata_of(1000)
    taken.change(None, large)
    room = TransactionQuota(most_bytes=1000)
    assert check_room(room, [taken], large, metadata_of(999)) is ErrorCode.NONE
    assert check_room(room, [taken], large, metadata_of(1001)) is FULL
