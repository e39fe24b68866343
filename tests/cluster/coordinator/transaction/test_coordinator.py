"""One transaction through the coordinator, effect by effect, and each way in which an effect can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import DropMarkers, SendMarkers, TransactionAnswer, TxnDecision
from cluster.coordinator.transaction.markers import LEADER_OFFLINE, MarkerQueue, MarkerVerdict, judge
from cluster.coordinator.transaction.records import decode_key, decode_value
from cluster.coordinator.transaction.state import IllegalTxnTransition, ProducerIdAndEpoch
from tests.cluster.coordinator.transaction.situations import (
    EPOCH,
    NOW,
    PID,
    T0,
    T1,
    TIMEOUT_MS,
    Bench,
    E,
    S,
    append_of,
    code_of,
    metadata_in,
)


def test_a_transaction_from_its_producer_to_its_end():
    """Each answer waits for its record; markers follow the decision, and the last one the completion."""
    bench = Bench()
    asked = bench.init()
    assert asked.answer is None
    assert append_of(asked).transit.state is S.EMPTY
    assert bench.written(asked).answer == TransactionAnswer(E.NONE, 101, 0)
    assert code_of(bench.written(bench.coordinator.add_partitions("id", 101, 0, {T0}, NOW))) is E.NONE
    added = bench.coordinator.add_offsets("id", 101, 0, "g1", 50, NOW)
    offsets = ("__consumer_offsets", 42)
    assert append_of(added).transit.topic_partitions == {T0, offsets}
    assert decode_key(append_of(added).key) == "id"
    assert decode_value("id", append_of(added).value).topic_partitions == {T0, offsets}
    bench.written(added)
    decided = bench.written(bench.coordinator.end_txn("id", 101, 0, NOW, commit=True))
    assert code_of(decided) is E.NONE
    [effect] = decided.effects
    assert (effect.markers.commit, effect.markers.topic_partitions) == (True, {T0, offsets})
    assert code_of(bench.coordinator.end_txn("id", 101, 0, NOW, commit=True)) is E.CONCURRENT_TRANSACTIONS
    again = bench.markers(decided, {T0: E.NOT_LEADER_OR_FOLLOWER, offsets: E.NONE})
    assert again.effects == (SendMarkers(replace(effect.markers, topic_partitions=frozenset({T0})), is_retry=True),)
    completing = bench.markers(again, {T0: E.NONE})
    assert append_of(completing).transit.state is S.COMPLETE_COMMIT
    bench.written(completing)
    assert code_of(bench.coordinator.end_txn("id", 101, 0, NOW, commit=True)) is E.NONE


def test_an_open_transaction_is_aborted_for_the_next_incarnation():
    """CONCURRENT_TRANSACTIONS once the abort is written; the old epoch is fenced at once; then a later epoch."""
    bench = Bench(metadata_in(S.ONGOING))
    fencing = bench.init()
    assert append_of(fencing).is_epoch_fence
    assert code_of(bench.coordinator.end_txn("id", PID, EPOCH, NOW, commit=True)) is E.PRODUCER_FENCED
    decided = bench.written(fencing)
    assert code_of(decided) is E.CONCURRENT_TRANSACTIONS
    bench.written(bench.markers(decided, {T0: E.NONE}))
    assert bench.written(bench.init()).answer == TransactionAnswer(E.NONE, PID, EPOCH + 2)


def test_a_fence_that_was_not_written_is_repeated_with_the_same_epoch():
    """The client was told of neither."""
    bench = Bench(metadata_in(S.ONGOING))
    assert code_of(bench.written(bench.init(), E.NOT_ENOUGH_REPLICAS)) is E.COORDINATOR_NOT_AVAILABLE
    assert (
        append_of(
            bench.coordinator.abort_timed_out(bench.coordinator.owned.all_ids(), NOW + TIMEOUT_MS)
        ).transit.producer_epoch
        == EPOCH + 1
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        *((each, E.COORDINATOR_NOT_AVAILABLE) for each in (E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_ENOUGH_REPLICAS)),
        *((each, E.COORDINATOR_NOT_AVAILABLE) for each in (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.REQUEST_TIMED_OUT)),
        *((each, E.NOT_COORDINATOR) for each in (E.NOT_LEADER_OR_FOLLOWER, E.KAFKA_STORAGE_ERROR)),
        *((each, E.UNKNOWN_SERVER_ERROR) for each in (E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE)),
        (E.INVALID_RECORD, E.INVALID_RECORD),
    ],
)
def test_a_failed_append(error, told):
    """The client is told, and everything is as before; a completion is tried until it succeeds."""
    bench = Bench(metadata_in(S.ONGOING))
    before = dict(bench.known)
    assert code_of(bench.written(bench.coordinator.end_txn("id", PID, EPOCH, NOW, commit=True), error)) is told
    assert bench.known == before
    ended = bench.written(bench.coordinator.end_txn("id", PID, EPOCH, NOW, commit=False))
    completing = bench.markers(ended, {T0: E.NONE})
    again = bench.written(completing, error)
    assert again == TxnDecision(effects=(replace(append_of(completing), is_retry=True),))
    assert bench.written(again).effects == ()


@pytest.mark.parametrize("wish", [True, False])
def test_a_failover_resumes_what_is_decided(wish):
    """Markers of the new coordinator epoch, for the partitions of the record."""
    decided = replace(metadata_in(S.PREPARE_COMMIT if wish else S.PREPARE_ABORT), pending=None)
    started = Bench(decided, metadata_in(S.ONGOING, transactional_id="open")).started
    [effect] = started.effects
    assert (effect.markers.commit, effect.markers.coordinator_epoch, effect.markers.topic_partitions) == (wish, 1, {T0})


def test_what_was_begun_in_another_epoch_changes_nothing():
    """A late record is NOT_COORDINATOR, a stale load is dropped."""
    bench = Bench(metadata_in(S.ONGOING))
    append = append_of(bench.coordinator.end_txn("id", PID, EPOCH, NOW, commit=True))
    assert bench.coordinator.elected(0, 1) == TxnDecision()
    assert bench.coordinator.elected(0, 2).effects == (DropMarkers(0),)
    assert code_of(bench.init()) is E.COORDINATOR_LOAD_IN_PROGRESS
    assert code_of(bench.coordinator.appended(append, E.NONE, NOW)) is E.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.coordinator.loaded(0, 1, {}, NOW) == TxnDecision()
    ongoing = metadata_in(S.ONGOING)
    bench.coordinator.loaded(0, 2, {"id": ongoing}, NOW)
    assert code_of(bench.coordinator.appended(append, E.NONE, NOW)) is E.NOT_COORDINATOR
    assert bench.coordinator.owned.served[0].transactions == {"id": ongoing}
    assert bench.coordinator.resigned(0, 1) == TxnDecision()
    assert bench.coordinator.resigned(0, 3).effects == (DropMarkers(0),)
    assert code_of(bench.init()) is E.NOT_COORDINATOR


def test_an_id_expires():
    """A tombstone; if it fails the id stays, and while it is on its way nothing else begins."""
    bench = Bench(metadata_in(S.COMPLETE_ABORT))
    for error, left in ((E.REQUEST_TIMED_OUT, {"id"}), (E.NONE, set())):
        expiring = bench.coordinator.expire_idle(bench.coordinator.owned.all_ids(), NOW + 990)
        assert append_of(expiring).value is None
        assert code_of(bench.init()) is E.CONCURRENT_TRANSACTIONS
        bench.written(expiring, error)
        assert bench.known.keys() == left


def test_init_producer_id_that_cannot_be():
    """An empty id, a timeout out of bounds, no producer id at hand; a stranger's identity where the id is new."""
    bench = Bench()
    assert code_of(bench.init(transactional_id="")) is E.INVALID_REQUEST
    for timeout_ms in (0, -1, 900_001):
        assert code_of(bench.init(timeout_ms=timeout_ms)) is E.INVALID_TRANSACTION_TIMEOUT
    assert code_of(bench.coordinator.add_partitions("", PID, EPOCH, {T0}, NOW)) is E.INVALID_REQUEST
    bench.next_producer_id = None
    assert code_of(bench.init()) is E.COORDINATOR_LOAD_IN_PROGRESS
    bench.next_producer_id = 100
    assert bench.written(bench.init(ProducerIdAndEpoch(3, 9))).answer == TransactionAnswer(E.NONE, 101, 0)


def test_markers_that_end_without_a_partition():
    """No partition lacks a marker: the completion at once. Partitions that are gone count as written."""
    bench = Bench(metadata_in(S.EMPTY))
    bench.written(bench.coordinator.add_partitions("id", PID, EPOCH, frozenset(), NOW))
    ended = bench.written(bench.coordinator.end_txn("id", PID, EPOCH, NOW, commit=True))
    assert append_of(ended).transit.state is S.COMPLETE_COMMIT
    bench = Bench(replace(metadata_in(S.PREPARE_ABORT), pending=None))
    [effect] = bench.started.effects
    assert append_of(bench.coordinator.markers_gone(effect.markers)).transit.state is S.COMPLETE_ABORT


def test_the_verdict_on_each_code():
    """Four are done, one ends it, all others are asked again, unexpected ones too."""
    verdicts = {verdict: {code for code in E if judge(code) is verdict} for verdict in MarkerVerdict}
    done = {E.NONE, E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.UNSUPPORTED_VERSION, E.INVALID_PRODUCER_EPOCH}
    assert verdicts[MarkerVerdict.DONE] == done
    assert verdicts[MarkerVerdict.ABANDON] == {E.TRANSACTION_COORDINATOR_FENCED}


def test_a_coordinator_of_the_past_stops():
    """It sends no more markers for the transaction and does not complete it."""
    known = replace(metadata_in(S.PREPARE_COMMIT), pending=None, topic_partitions=frozenset({T0, T1}))
    bench = Bench(known)
    fenced = {T0: E.TRANSACTION_COORDINATOR_FENCED, T1: E.REQUEST_TIMED_OUT}
    assert bench.markers(bench.started, fenced) == TxnDecision()
    assert bench.known["id"].state is S.PREPARE_COMMIT


def test_a_stranger_with_the_producers_id_holds_up_no_transaction():
    """A log with a later epoch of the producer has nothing of the transaction: it is not waited for."""
    known = replace(metadata_in(S.PREPARE_COMMIT), pending=None, topic_partitions=frozenset({T0, T1}))
    bench = Bench(known)
    completion = append_of(bench.markers(bench.started, {T0: E.INVALID_PRODUCER_EPOCH, T1: E.NONE}))
    assert completion.transit.state is S.COMPLETE_COMMIT


def test_markers_by_broker():
    """Grouped by the leader of now; a leader that is away is waited for, what does not exist is gone."""
    known = replace(metadata_in(S.PREPARE_COMMIT), pending=None, topic_partitions=frozenset({T0, T1, ("u", 0)}))
    [effect] = Bench(known).started.effects
    queue = MarkerQueue()
    for topic_partition in effect.markers.topic_partitions:
        queue.add(replace(effect.markers, topic_partitions=frozenset({topic_partition})))
    sent = queue.take({T0: 1, T1: 1, ("u", 0): LEADER_OFFLINE}.get)
    assert sent.by_broker == {1: (replace(effect.markers, topic_partitions=frozenset({T0, T1})),)}
    assert (sent.gone, len(queue)) == ((), 1)
    assert queue.take({}.get).gone == (replace(effect.markers, topic_partitions=frozenset({("u", 0)})),)
    queue.add(effect.markers)
    queue.drop(0)
    assert len(queue) == 0


def test_an_effect_is_reported_once():
    """A second report is a mistake of the shell, and found."""
    bench = Bench(metadata_in(S.EMPTY))
    append = append_of(bench.init())
    bench.coordinator.appended(append, E.NONE, NOW)
    with pytest.raises(IllegalTxnTransition):
        bench.coordinator.appended(append, E.NONE, NOW)
    other = TransactionCoordinator(1, 1, 1)
    assert code_of(other.appended(append, E.NONE, NOW)) is E.NOT_COORDINATOR
