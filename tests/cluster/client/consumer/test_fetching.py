"""What a consumer's core asks for, and what single answers mean."""

from __future__ import annotations

import logging
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.client.consumer.fetch_plans import READ_COMMITTED, READ_UNCOMMITTED, Fetch, FetchSettings
from cluster.client.consumer.fetching import FetchCore
from cluster.client.consumer.lookup import OffsetLookup
from cluster.client.consumer.results import (
    ConsumerError,
    CorruptRecord,
    LogTruncated,
    NoOffsetForPartition,
    OffsetOutOfRange,
    PartitionError,
    TopicRecreated,
)
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset
from cluster.protocol.batch import CRC_AT
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResponse, FetchResult
from cluster.protocol.records import NewRecord, build_batch

T0, T1 = ("t", 0), ("t", 1)
FOREVER_MS = 1_000_000


def view(
    leader: int = 1,
    epoch: int = 4,
    error: ErrorCode = ErrorCode.NONE,
    partitions: int = 2,
    topic_id: UUID | None = None,
) -> ClusterView:
    described = {n: PartitionView(n, ErrorCode.NONE, leader, epoch, (1, 2), (1, 2), ()) for n in range(partitions)}
    brokers = {node: BrokerAddress(node, "h", node) for node in (1, 2)}
    topic = TopicView("t", topic_id, error, False, {} if error else described)
    return ClusterView("c", 1, brokers, {"t": topic})


def core(reset: int | None = None, isolation: int = READ_UNCOMMITTED, check_crcs: bool = True) -> FetchCore:
    """Assigned t-0 at offset 10 and t-1 at 0."""
    made = FetchCore(
        FetchSettings(1, 50_000, 500, 1_000, isolation, check_crcs, reset), ExponentialBackoff(100, 100, Random(1))
    )
    made.assign([T0, T1])
    made.seek(T0, 10, leader_epoch=3)
    made.seek(T1, 0)
    return made


def sent(made: FetchCore, cluster: ClusterView | None = None, now_ms: int = 0) -> Fetch:
    """The one fetch that is due."""
    cluster = cluster or view()
    ((node_id, partitions),) = made.plan(cluster, now_ms).fetches.items()
    return made.fetch(node_id, partitions, cluster)


def answer(made: FetchCore, fetch: Fetch, *results: FetchResult, error: int = 0) -> set[str]:
    return made.fetched(fetch, FetchResponse(0, error, 0, 0, list(results)), 0)


def result(key: tuple[str, int], error: int = 0, records: bytes = b"", **more) -> FetchResult:
    return FetchResult(*key, error, 100, 90, 0, records, **more)


def batch(base: int, count: int, **more) -> bytes:
    return build_batch([NewRecord(0, None, b"%d" % (base + n)) for n in range(count)], base_offset=base, **more)


def test_a_fetch_says_what_is_known():
    """Position, the leader's epoch and that of the last record; no session; nothing while an answer is awaited."""
    made = core(isolation=READ_COMMITTED)
    fetch = sent(made)
    assert fetch.node_id == 1
    request = fetch.request
    assert (request.replica_id, request.session_id, request.session_epoch, request.isolation_level) == (-1, 0, -1, 1)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 50_000)
    assert request.partitions == [("t", 0, 4, 10, 3, -1, 1_000), ("t", 1, 4, 0, -1, -1, 1_000)]
    assert not made.plan(view(), 0).fetches
    made.fetch_failed(fetch)
    assert sent(made).places == fetch.places


def test_records_come_in_turn():
    """What came first is returned first; who brought records is asked for last; the rest of a block waits."""
    made = core()
    fetch = sent(made)
    answer(made, fetch, result(T1, records=batch(0, 3)), result(T0, records=batch(8, 4, leader_epoch=4)))
    assert [(each.partition, each.offset) for each in made.take(2)] == [(1, 0), (1, 1)]
    assert not made.plan(view(), 0).fetches
    assert [(each.partition, each.offset) for each in made.take(2)] == [(1, 2), (0, 10)]
    assert [each.key for each in made.plan(view(), 0).fetches[1]] == [T1]
    assert [(each.partition, each.offset, each.leader_epoch) for each in made.take(9)] == [(0, 11, 4)]
    assert [(entry[1], entry[3], entry[4]) for entry in sent(made).request.partitions] == [(1, 3, -1), (0, 12, 4)]
    assert (made.lag(T0), made.lag(T1)) == (88, 97)


def test_paused_records_are_kept():
    """A pause hides what was fetched, without fetching it again."""
    made = core()
    answer(made, sent(made), result(T0, records=batch(10, 2)), result(T1, records=batch(0, 1)))
    made.assignment.find(T0).is_paused = True
    assert [each.partition for each in made.take(9)] == [1]
    assert [each.key for each in made.plan(view(), 0).fetches[1]] == [T1]
    made.assignment.find(T0).is_paused = False
    assert [each.offset for each in made.take(9)] == [10, 11]


def test_assigning_again():
    """Who stays goes on where it is, who leaves is forgotten with its records and late answers."""
    made = core(EARLIEST_TIMESTAMP)
    fetch = sent(made)
    made.assign([T1, ("t", 5)])
    answer(made, fetch, result(T0, records=batch(10, 2)), result(T1, records=batch(0, 1)))
    assert [each.partition for each in made.take(9)] == [1]
    assert made.assignment.assigned == [("t", 5), T1]
    with pytest.raises(ValueError, match="No current assignment for partition t-0"):
        made.seek(T0, 1)
    assert made.plan(view(), 0).stale_topics == {"t"}


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH,
                                  ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE,
                                  ErrorCode.KAFKA_STORAGE_ERROR])  # fmt: skip
def test_a_stale_leader(code):
    """Metadata is asked for; the partition is asked for again after a pause, or at once of a new leader or epoch."""
    made = core()
    assert answer(made, sent(made), result(T0, code), result(T1)) == {"t"}
    assert [each.key for each in made.plan(view(), 99).fetches[1]] == [T1]
    assert made.retry_ms(99) == 100
    assert [each.key for each in made.plan(view(), 100).fetches[1]] == [T0, T1]
    assert [each.key for each in made.plan(view(epoch=5), 0).fetches[1]] == [T0, T1]
    assert [each.key for each in made.plan(view(leader=2), 0).fetches[2]] == [T0, T1]
    assert made.take(9) == []


def test_errors_without_new_metadata():
    """REQUEST_TIMED_OUT and UNKNOWN_SERVER_ERROR are asked again after a pause; so is a failed request."""
    made = core()
    assert answer(made, sent(made), result(T0, ErrorCode.REQUEST_TIMED_OUT), result(T1, -1)) == set()
    assert not made.plan(view(), 99).fetches
    fetch = sent(made, now_ms=100)
    assert answer(made, fetch, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND) == set()
    assert made.take(9) == []


def test_no_leader():
    """A partition without a leader that is alive is not asked for; its topic's metadata is."""
    made = core()
    for cluster in (view(leader=-1), view(leader=9), view(partitions=0)):
        plan = made.plan(cluster, 0)
        assert (plan.fetches, plan.stale_topics) == ({}, {"t"})
    made.seek_to([T0], LATEST_TIMESTAMP)
    plan = made.plan(view(leader=9), 0)
    assert (plan.lookups, plan.stale_topics) == ({}, {"t"})
    # No leader is -1, and so is the first bootstrap address, which leads nothing.
    plan = made.plan(replace(view(leader=-1), brokers={-1: BrokerAddress(-1, "h", 1)}), 0)
    assert (plan.fetches, plan.lookups, plan.stale_topics) == ({}, {}, {"t"})


def test_nowhere_to_begin():
    """Without position and policy, the partitions are named; a seek helps."""
    made = core()
    made.assign([T0, T1, ("t", 2), ("u", 0)])
    with pytest.raises(NoOffsetForPartition, match=r"t-2, u-0; seek to an offset") as raised:
        made.take(9)
    assert raised.value.partitions == [("t", 2), ("u", 0)]
    with pytest.raises(NoOffsetForPartition):
        made.position(("t", 2))
    made.seek(("t", 2), 0)
    made.seek_to([("u", 0)], EARLIEST_TIMESTAMP)
    assert made.take(9) == []


def test_out_of_range_without_policy():
    """Told at each attempt, and the position stays."""
    made = core()
    for _ in range(2):
        answer(made, sent(made), result(T0, ErrorCode.OFFSET_OUT_OF_RANGE), result(T1))
        with pytest.raises(OffsetOutOfRange, match=r"t-0 at 10; seek to an offset, or set auto\.offset\.reset"):
            made.take(9)
        assert made.position(T0) == 10


@pytest.mark.parametrize("reset", [EARLIEST_TIMESTAMP, LATEST_TIMESTAMP])
def test_out_of_range_with_policy(reset, caplog):
    """The new position is looked for; what the answer says is where reading goes on."""
    caplog.set_level(logging.INFO)
    made = core(reset)
    answer(made, sent(made), result(T0, ErrorCode.OFFSET_OUT_OF_RANGE), result(T1))
    ((node_id, asked),) = made.plan(view(), 0).lookups.items()
    assert (node_id, asked[T0].timestamp, made.position(T0)) == (1, reset, None)
    made.resets.asked(asked)
    assert made.listed(asked, {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}, 0) == {"t"}
    assert (made.plan(view(), 99).lookups, made.retry_ms(0)) == ({}, 100)
    asked = made.plan(view(), 100).lookups[1]
    assert made.listed(asked, {T0: ListedOffset(33, -1, 2)}, 0) == set()
    assert made.position(T0) == 33
    assert "fetch position 10 of t-0 is out of range" in caplog.text
    assert sent(made).request.partitions[0][3:5] == (33, 2)


def test_a_refused_lookup():
    """An offset that may not be asked for is an error of the poll, each time it is asked."""
    made = core(LATEST_TIMESTAMP)
    made.seek_to([T0], EARLIEST_TIMESTAMP)
    for now_ms in (0, 200):
        asked = made.plan(view(), now_ms).lookups[1]
        made.resets.asked(asked)
        made.listed(asked, {T0: ErrorCode.TOPIC_AUTHORIZATION_FAILED}, now_ms)
        with pytest.raises(PartitionError, match="TOPIC_AUTHORIZATION_FAILED while looking for an offset of t-0"):
            made.take(9)


def test_truncation():
    """What was read is not the leader's any more: on where both agree, or an error without a policy (KIP-320)."""
    made = core(EARLIEST_TIMESTAMP)
    answer(made, sent(made), result(T0, diverging=(2, 7)), result(T1))
    assert made.position(T0) == 7
    fetch = sent(made)
    assert fetch.request.partitions[0][3:5] == (7, 2)
    answer(made, fetch, result(T0, diverging=(-1, -1)), result(T1))
    assert T0 in made.resets
    made = core()
    answer(made, sent(made), result(T0, diverging=(2, 7)), result(T1))
    with pytest.raises(LogTruncated, match=r"t-0: the position is 10, and .* was read up to 7; seek to 7"):
        made.take(9)
    assert made.position(T0) == 10


def test_a_truncation_of_unknown_length_names_no_offset():
    """Where the log and what was read agree on nothing that is known, -1 is not told as an offset to seek to."""
    made = core()
    answer(made, sent(made), result(T0, diverging=(-1, -1)), result(T1))
    with pytest.raises(LogTruncated, match=r"position is 10, and .* agrees is not known; seek to an") as raised:
        made.take(9)
    assert (raised.value.divergent_offset, "-1" in str(raised.value)) == (-1, False)


def test_a_truncation_sends_no_one_forward():
    """The leader's earlier epoch may end beyond the position: a program that seeks there would pass over records."""
    made = core()
    answer(made, sent(made), result(T0, diverging=(1, 12)), result(T1))
    with pytest.raises(LogTruncated, match=r"position is 10, .*; seek to 10") as raised:
        made.take(9)
    assert raised.value.divergent_offset == 10


def test_a_corrupt_batch():
    """Records before it come first; then the error names it; then it is fetched again."""
    made = core()
    broken = bytearray(batch(13, 2))
    broken[CRC_AT] ^= 1
    answer(made, sent(made), result(T0, records=batch(10, 3) + broken), result(T1, records=batch(0, 1)))
    assert [each.offset for each in made.take(9)] == [10, 11, 12]
    with pytest.raises(CorruptRecord, match="t-0 at offset 13 is invalid, cause: the checksum") as raised:
        made.take(9)
    assert (raised.value.partition, raised.value.offset, made.position(T0)) == (T0, 13, 13)
    assert [each.partition for each in made.take(9)] == [1]
    answer(made, sent(made), result(T0, records=batch(13, 2)), result(T1))
    assert [each.offset for each in made.take(9)] == [13, 14]
    made = core(check_crcs=False)
    answer(made, sent(made), result(T0, ErrorCode.CORRUPT_MESSAGE), result(T1, records=bytes(broken)))
    with pytest.raises(CorruptRecord, match="the broker found it corrupt"):
        made.take(9)
    assert [each.offset for each in made.take(9)] == [13, 14]


def test_bytes_that_are_no_batch():
    """A magic that we do not read is an error, not silence; the rest of a batch at the end is."""
    made = core()
    old = bytearray(batch(10, 1))
    old[16] = 1
    answer(made, sent(made), result(T0, records=bytes(old)), result(T1, records=batch(0, 2) + batch(2, 1)[:65]))
    with pytest.raises(CorruptRecord, match="t-0 at offset 10 is invalid, cause: magic 1"):
        made.take(9)
    assert [each.offset for each in made.take(9)] == [0, 1]
    assert made.position(T1) == 2


@pytest.mark.parametrize("size", [1, 60, 65, 70])
def test_an_answer_without_a_whole_batch(size):
    """A broker that cuts the first batch off is an error: asking again at once, and forever, would bring no more."""
    made = core()
    answer(made, sent(made), result(T0, records=batch(10, 3)[:size]), result(T1))
    with pytest.raises(CorruptRecord, match="t-0 at offset 10 is invalid, cause: the response holds no whole batch"):
        made.take(9)
    assert made.position(T0) == 10
    assert made.take(9) == []


def test_what_is_put_off_is_due_in_time_beside_what_was_never_asked():
    """While the leader of one partition is being connected to, nobody sleeps beyond what another one waits for."""
    made = core(EARLIEST_TIMESTAMP)
    answer(made, sent(made), result(T0, ErrorCode.NOT_LEADER_OR_FOLLOWER), result(T1))
    made.seek_to([T1], EARLIEST_TIMESTAMP)
    assert made.retry_ms(1) == 100
    lookup = OffsetLookup(ExponentialBackoff(100, 100, Random(1)))
    lookup.want(T0, 5)
    asked = lookup.due(view(), 0)[1]
    lookup.asked(asked)
    lookup.failed(asked, 7)
    lookup.want(T1, 5)
    assert lookup.retry_ms(8) == 107
    assert lookup.retry_ms(107) is None


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE,
                                  ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR])  # fmt: skip
def test_a_lookup_that_is_put_off_asks_for_metadata(code):
    """As Kafka's: the epoch that we know may be that of a topic which was deleted and created again meanwhile."""
    lookup = OffsetLookup(ExponentialBackoff(100, 100, Random(1)))
    lookup.want(T0, 5)
    asked = lookup.due(view(), 0)[1]
    lookup.asked(asked)
    assert lookup.answered(asked, {T0: code}, 0).stale_topics == {"t"}
    assert lookup.retry_ms(0) == 100


@pytest.mark.parametrize("before", ["paused", "without a leader"])
def test_a_seek_before_anything_was_known_is_in_the_topic_that_is_known_first(before):
    """Also where nothing of it could be fetched: if that topic is created again, the offset is not in the new."""
    made = core(EARLIEST_TIMESTAMP)
    made.assignment.find(T0).is_paused = before == "paused"
    made.plan(view(topic_id=UUID(int=1), leader=1 if before == "paused" else -1), 0)
    made.assignment.find(T0).is_paused = False
    plan = made.plan(view(topic_id=UUID(int=2)), 0)
    assert made.position(T0) is None and not plan.fetches
    assert set(made.plan(view(topic_id=UUID(int=2)), 0).lookups[1]) == {T0, T1}


def test_a_position_that_is_refused():
    """Who asks for a position hears why there is none, instead of waiting in vain; then it is looked for again."""
    made = core(EARLIEST_TIMESTAMP)
    made.seek_to([T0], EARLIEST_TIMESTAMP)
    asked = made.plan(view(), 0).lookups[1]
    made.resets.asked(asked)
    assert made.position(T0) is None
    made.listed(asked, {T0: ErrorCode.TOPIC_AUTHORIZATION_FAILED}, 0)
    with pytest.raises(PartitionError, match="TOPIC_AUTHORIZATION_FAILED while looking for an offset of t-0"):
        made.position(T0)
    assert made.position(T0) is None
    assert made.take(9) == []
    assert made.plan(view(), 200).lookups[1] == asked


def test_refusals():
    """What asking again does not change is raised; other partitions go on; each poll asks again."""
    made = core()
    answer(made, sent(made), result(T0, ErrorCode.TOPIC_AUTHORIZATION_FAILED), result(T1, records=batch(0, 1)))
    with pytest.raises(PartitionError, match="TOPIC_AUTHORIZATION_FAILED while fetching t-0"):
        made.take(9)
    assert [each.partition for each in made.take(9)] == [1]
    assert made.plan(view(error=ErrorCode.INVALID_TOPIC_EXCEPTION), 0).stale_topics == {"t"}
    made.plan(view(error=ErrorCode.INVALID_TOPIC_EXCEPTION), 0)
    for _ in (T0, T1):
        with pytest.raises(PartitionError, match="INVALID_TOPIC_EXCEPTION while looking for t-"):
            made.take(9)
    assert made.take(9) == []
    made.unsupported([made.assignment.find(T0)], "no version")
    with pytest.raises(ConsumerError, match="fetch: no version"):
        made.take(9)


def described(number: int, epoch: int = 4) -> ClusterView:
    """The topic as it was created for the ``number``th time."""
    known = view(epoch=epoch)
    return replace(known, topics={"t": replace(known.topics["t"], topic_id=UUID(int=number))})


def test_a_topic_that_was_created_again_is_read_from_its_beginning():
    """Whatever its log holds at the old position: that is another log's. A late answer is of the old one."""
    made = core(EARLIEST_TIMESTAMP)
    late = sent(made, described(1))
    plan = made.plan(described(2, epoch=0), 0)
    assert not plan.fetches
    answer(made, late, result(T0, records=batch(10, 2)))
    assert made.take(9) == []
    assert set(made.plan(described(2, epoch=0), 0).lookups[1]) == {T0, T1}


def test_metadata_tell_first_whether_a_log_that_lacks_the_position_is_another():
    """It was cut off or truncated, unless the topic turns out to be another one: then reading starts over."""
    for reply in (result(T0, ErrorCode.OFFSET_OUT_OF_RANGE), result(T0, diverging=(3, 7))):
        made, known = core(LATEST_TIMESTAMP), described(1)
        assert answer(made, sent(made, known), reply) == {"t"}
        plan = made.plan(known, 0)
        assert [each.key for each in plan.fetches[1]] == [T1] and plan.stale_topics == {"t"}
        made.fetch_failed(made.fetch(1, [], known))
        assert answer(made, sent(made, described(1)), reply) == set()
        assert made.position(T0) == (7 if reply.diverging else None)
        made = core(LATEST_TIMESTAMP)
        assert answer(made, sent(made, known), reply) == {"t"}
        made.plan(described(2), 0)
        assert made.position(T0) is None


def test_without_a_policy_a_topic_that_was_created_again_is_an_error_until_a_seek():
    """The position stays, and nothing is read at it."""
    made = core()
    made.fetch_failed(sent(made, described(1)))
    for _ in range(2):
        assert not made.plan(described(2), 0).fetches
        for partition in (0, 1):
            with pytest.raises(TopicRecreated, match=f"partition {partition}"):
                made.take(9)
    assert made.position(T0) == 10
    made.plan(described(2), 0)
    made.seek(T0, 5)
    made.seek(T1, 0)
    assert set(sent(made, described(2)).places) == {T0, T1}
