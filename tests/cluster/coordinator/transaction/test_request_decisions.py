"""Every state and every request: the code that is answered, or the state that becomes pending."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.coordinator.transaction import request_decisions as requests
from cluster.coordinator.transaction.expiry import abort_if_timed_out, expire_if_idle
from cluster.coordinator.transaction.invariants import validate_metadata
from cluster.coordinator.transaction.state import ProducerIdAndEpoch, TransactionMetadata
from tests.cluster.coordinator.transaction.situations import (
    EPOCH,
    NOW,
    PID,
    SITUATIONS,
    T0,
    T1,
    TIMEOUT_MS,
    E,
    S,
    metadata_in,
)


def init(known, expected=None):
    return requests.init_producer_id(known, TIMEOUT_MS, expected, lambda: 99, NOW)


def due(decided):
    return E.NONE if decided is None else decided


EVENTS = {
    "init": init,
    "init again": lambda known: init(known, ProducerIdAndEpoch(PID, EPOCH)),
    "init of an old epoch": lambda known: init(known, ProducerIdAndEpoch(PID, EPOCH - 1)),
    "init of another": lambda known: init(known, ProducerIdAndEpoch(PID + 1, EPOCH)),
    "add T0": lambda known: requests.add_partitions(known, PID, EPOCH, {T0}, NOW),
    "add T1": lambda known: requests.add_partitions(known, PID, EPOCH, {T1}, NOW),
    "add of an old epoch": lambda known: requests.add_partitions(known, PID, EPOCH - 1, {T0}, NOW),
    "add of a later epoch": lambda known: requests.add_partitions(known, PID, EPOCH + 1, {T0}, NOW),
    "add of another": lambda known: requests.add_partitions(known, PID + 1, EPOCH, {T0}, NOW),
    "commit": lambda known: requests.end_txn(known, PID, EPOCH, NOW, commit=True),
    "abort": lambda known: requests.end_txn(known, PID, EPOCH, NOW, commit=False),
    "commit of an old epoch": lambda known: requests.end_txn(known, PID, EPOCH - 1, NOW, commit=True),
    "abort of another": lambda known: requests.end_txn(known, PID + 1, EPOCH, NOW, commit=False),
    "timeout": lambda known: due(abort_if_timed_out(known, NOW + TIMEOUT_MS)),
    "no timeout": lambda known: due(abort_if_timed_out(known, NOW - 20 + TIMEOUT_MS)),
    "expiration": lambda known: due(expire_if_idle(known, 1000, NOW + 990)),
    "no expiration": lambda known: due(expire_if_idle(known, 1000, NOW + 989)),
}
WAIT, FENCED, MAPPING, STATE = (
    E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_TXN_STATE,
)  # fmt: skip

#: Whatever the state.
ALWAYS = {
    "add of an old epoch": FENCED,
    "add of a later epoch": FENCED,
    "add of another": MAPPING,
    "commit of an old epoch": FENCED,
    "abort of another": MAPPING,
    "no timeout": E.NONE,
    "no expiration": E.NONE,
}
#: While something is pending, markers included.
PENDING = {
    **dict.fromkeys(("init", "init again", "init of an old epoch", "init of another"), WAIT),
    **dict.fromkeys(("add T0", "add T1", "commit", "abort"), WAIT),
    "timeout": E.NONE,
    "expiration": E.NONE,
}
IDLE = {
    "init": S.EMPTY,
    "init again": S.EMPTY,
    "init of an old epoch": FENCED,
    "init of another": FENCED,
    "add T0": S.ONGOING,
    "add T1": S.ONGOING,
    "timeout": E.NONE,
    "expiration": S.DEAD,
}
EXPECTED = {
    "EMPTY": {**IDLE, "commit": STATE, "abort": STATE},
    "COMPLETE_COMMIT": {**IDLE, "commit": E.NONE, "abort": STATE},
    "COMPLETE_ABORT": {**IDLE, "commit": STATE, "abort": E.NONE},
    "ONGOING": {
        # A former incarnation's transaction is aborted first. Kafka compares the epoch only when it raises it.
        "init": S.PREPARE_ABORT,
        "init again": S.PREPARE_ABORT,
        "init of an old epoch": S.PREPARE_ABORT,
        "init of another": FENCED,
        "add T0": E.NONE,
        "add T1": S.ONGOING,
        "commit": S.PREPARE_COMMIT,
        "abort": S.PREPARE_ABORT,
        "timeout": S.PREPARE_ABORT,
        "expiration": E.NONE,
    },
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_state_and_event(situation, event):
    """The table; and a refusal changes nothing, since nothing is returned but its code."""
    known = SITUATIONS[situation]
    expected = (ALWAYS | EXPECTED.get(situation, PENDING))[event]
    decided = EVENTS[event](known)
    if isinstance(decided, TransactionMetadata):
        validate_metadata(decided)
        assert decided.pending.state is expected
        assert decided.state is known.state
    else:
        assert decided is expected


@pytest.mark.parametrize(("state", "commit"), [(S.PREPARE_COMMIT, False), (S.PREPARE_ABORT, True)])
def test_the_other_outcome_of_a_decided_transaction(state, commit):
    """Without anything pending a retry waits and the other wish is refused, as Kafka's table says."""
    known = replace(metadata_in(state), pending=None)
    assert requests.end_txn(known, PID, EPOCH, NOW, commit=commit) is STATE
    assert requests.end_txn(known, PID, EPOCH, NOW, commit=not commit) is WAIT
    assert init(known) is WAIT
    assert requests.add_partitions(known, PID, EPOCH, {T0}, NOW) is WAIT


def test_an_unknown_id():
    """Without InitProducerId there is no transaction."""
    assert requests.add_partitions(None, PID, EPOCH, {T0}, NOW) is MAPPING
    assert requests.end_txn(None, PID, EPOCH, NOW, commit=True) is MAPPING
    assert requests.verify_partitions(None, PID, EPOCH, {T0}) is MAPPING


def test_verification():
    """A partition is in the transaction once that is written (KIP-890)."""
    ongoing = SITUATIONS["ONGOING -> ONGOING"]
    assert requests.verify_partitions(ongoing, PID, EPOCH, {T0, T1}) == {
        T0: E.NONE,
        T1: E.TRANSACTION_ABORTABLE,
    }
    assert requests.verify_partitions(ongoing, PID, EPOCH - 1, {T0}) is FENCED
    assert requests.verify_partitions(SITUATIONS["PREPARE_ABORT"], PID, EPOCH, {T0}) is WAIT


def epochs(decided):
    transit = decided.pending
    return transit.producer_id, transit.producer_epoch, transit.last_producer_epoch


@pytest.mark.parametrize(
    ("fields", "expected", "becomes"),
    [
        ({}, None, (PID, 5, -1)),
        ({}, (PID, 4), (PID, 5, 4)),
        # The answer to the same request was lost.
        ({"last_producer_epoch": 3}, (PID, 3), (PID, 4, 3)),
        ({"last_producer_epoch": 3}, (PID, 2), FENCED),
        # The id is new here: whoever it was before may continue.
        ({"producer_epoch": -1}, (3, 8), (PID, 0, -1)),
        # 32765 is the last epoch that is raised, 32766 the last one that is given.
        ({"producer_epoch": 32765}, None, (PID, 32766, -1)),
        ({"producer_epoch": 32766}, None, (99, 0, -1)),
        ({"producer_epoch": 32767}, None, (99, 0, -1)),
        ({"producer_epoch": 32766}, (PID, 32766), (99, 0, 32766)),
        ({"producer_epoch": 32766, "last_producer_epoch": 32765}, (PID, 32765), (PID, 32766, 32765)),
        ({"producer_epoch": 32767}, (PID, 32766), FENCED),
        # After the producer id was changed: the same request again, and one of an earlier incarnation.
        ({"producer_epoch": 0, "last_producer_id": 3, "last_producer_epoch": 32766}, (3, 32766), (PID, 0, 32766)),
        ({"producer_epoch": 0, "last_producer_id": 3}, (3, 32766), FENCED),
        ({"producer_epoch": 0, "last_producer_id": 3, "last_producer_epoch": 5}, (3, 5), FENCED),
    ],
)
def test_the_epoch_of_init_producer_id(fields, expected, becomes):
    """KIP-360: raise, tell again, change the producer id, or fence."""
    known = metadata_in(S.EMPTY, **fields)
    decided = init(known, None if expected is None else ProducerIdAndEpoch(*expected))
    assert (decided if isinstance(decided, E) else epochs(decided)) == becomes


def test_no_producer_id_is_at_hand():
    """Without a producer ID at hand, InitProducerId has the client ask again."""
    known = metadata_in(S.EMPTY, producer_epoch=32766)
    assert requests.init_producer_id(known, 1, None, lambda: None, NOW) is E.COORDINATOR_LOAD_IN_PROGRESS


def test_the_start_of_a_transaction_is_that_of_its_first_partitions():
    """Later partitions do not prolong it."""
    assert (
        requests.add_partitions(metadata_in(S.COMPLETE_ABORT), PID, EPOCH, {T0}, NOW).pending.start_timestamp_ms == NOW
    )
    assert requests.add_partitions(metadata_in(S.ONGOING), PID, EPOCH, {T1}, NOW).pending.start_timestamp_ms == NOW - 20
