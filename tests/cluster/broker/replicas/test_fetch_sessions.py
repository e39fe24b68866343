"""Fetch sessions (KIP-227): their ids and epochs, who gets one, and which partitions a fetch names and looks at."""

from __future__ import annotations

import asyncio
import random

import pytest

from cluster.broker.handlers import fetch as fetch_handler
from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.fetch_session import INT32_MAX, FetchSession, next_epoch
from cluster.broker.replicas.fetch_sessions import EVICTION_MS, FetchSessions
from cluster.broker.replicas.fetcher import client_id
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.reads import Reads
from cluster.protocol import fetch
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchRequest, FetchResult
from cluster.replication.leader import LeaderState
from tests.cluster.broker.scenes import TOPIC, client_of_leader, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

PARTITIONS = 12


def wants(*numbers: int, session: tuple[int, int] = (0, 0), forgotten: tuple[int, ...] = ()) -> FetchRequest:
    wanted = [FetchPartition(TOPIC, number, 0, 0, -1, 0, 1000) for number in numbers]
    return FetchRequest(2, 500, 1, 1000, 0, *session, wanted, [(TOPIC, number) for number in forgotten])


def opened(sessions: FetchSessions, reader: FetchedBy, now_ms: int = 0) -> FetchSession:
    session = sessions.admit(wants(0), reader, now_ms)
    assert session is not None
    return session


def refused(sessions: FetchSessions, session: tuple[int, int], reader: FetchedBy) -> ErrorCode:
    with pytest.raises(RequestRefused) as refusal:
        sessions.admit(wants(session=session), reader, 0)
    return refusal.value.error_code


def test_epochs_go_round_past_zero() -> None:
    """After the greatest epoch comes 1: 0 begins a session, -1 ends it."""
    assert [next_epoch(epoch) for epoch in (0, 1, INT32_MAX - 1, INT32_MAX)] == [1, 2, INT32_MAX, 1]


def test_a_session_is_used_in_the_order_of_its_epochs() -> None:
    """An unknown id is FETCH_SESSION_ID_NOT_FOUND, another epoch than the next INVALID_FETCH_SESSION_EPOCH."""
    sessions = FetchSessions(random.Random(1), 10)
    reader = FetchedBy(2, 7)
    session = opened(sessions, reader)
    known = session.session_id
    assert refused(sessions, (known + 1, 1), reader) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, (known, 2), reader) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.admit(wants(session=(known, 1)), reader, 0) is session
    assert refused(sessions, (known, 1), reader) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.admit(wants(session=(known, 2)), reader, 0) is session
    session.epoch = INT32_MAX
    sessions.admit(wants(session=(known, INT32_MAX)), reader, 0)
    assert sessions.admit(wants(session=(known, 1)), reader, 0) is session


def test_a_session_belongs_to_one_life_of_one_follower() -> None:
    """Another broker, and the same one after a restart, do not find it."""
    sessions = FetchSessions(random.Random(1), 10)
    known = opened(sessions, FetchedBy(2, 7)).session_id
    for stranger in (FetchedBy(3, 7), FetchedBy(2, 8)):
        assert refused(sessions, (known, 1), stranger) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_fetch_ends_the_session_it_names() -> None:
    """With epoch -1 none follows, with epoch 0 another; a new one of the same follower replaces its former one."""
    sessions = FetchSessions(random.Random(1), 10)
    reader = FetchedBy(2, 7)
    first = opened(sessions, reader).session_id
    assert sessions.admit(wants(0, session=(first, -1)), reader, 0) is None
    assert refused(sessions, (first, 1), reader) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    second = opened(sessions, reader).session_id
    opened(sessions, FetchedBy(2, 8))
    assert refused(sessions, (second, 1), reader) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 1


def test_an_idle_session_makes_room_for_another() -> None:
    """With all slots taken the one that was not used for longest goes, if that is two minutes; else no new one."""
    sessions = FetchSessions(random.Random(1), 2)
    opened(sessions, FetchedBy(2), 0)
    busy = opened(sessions, FetchedBy(3), 1000)
    assert sessions.admit(wants(0), FetchedBy(4), EVICTION_MS - 1) is None
    sessions.admit(wants(session=(busy.session_id, 1)), FetchedBy(3), EVICTION_MS)
    assert sessions.admit(wants(0), FetchedBy(4), EVICTION_MS) is not None
    assert sessions.admit(wants(session=(busy.session_id, 2)), FetchedBy(3), EVICTION_MS) is busy
    assert FetchSessions(random.Random(1), 0).admit(wants(0), FetchedBy(2), 0) is None


def read(session: FetchSession, request: FetchRequest, high_watermark: int = 0) -> list[int]:
    """The partitions that a fetch of the session looks at."""
    wanted = session.begin(request)
    session.read_by(Reads(list(wanted), 1, 1000, session.reader, lambda *_: pytest.fail("not read here")), 0)
    return [each.partition for each in wanted]


def answer(session: FetchSession, high_watermarks: dict[int, int]) -> list[int]:
    """The partitions that are news, when each was found with this watermark and is settled."""
    results = [FetchResult(TOPIC, number, 0, mark, mark, 0) for number, mark in high_watermarks.items()]
    return [result.partition for result in session.answer(results, lambda _: True)]


def test_a_fetch_looks_at_what_changed_and_what_it_names() -> None:
    """Nothing else. What changed comes first; what is forgotten does not come; what is as told is not told again."""
    session = opened(FetchSessions(random.Random(1), 10), FetchedBy(2))
    assert read(session, wants(0, 1, 2, 3)) == [0, 1, 2, 3]
    assert answer(session, {0: 0, 1: 0, 2: 0, 3: 0}) == [0, 1, 2, 3]
    assert read(session, wants(session=(1, 1))) == []
    assert answer(session, {}) == []
    for number in (2, 3):
        session.partitions[TOPIC, number].changed(wakes=True)
    assert read(session, wants(1, session=(1, 2), forgotten=(3,))) == [2, 1]
    assert answer(session, {2: 0, 1: 0}) == [1], "2 is as it was told; 1 asks and is answered"
    session.partitions[TOPIC, 2].changed(wakes=False)
    assert read(session, wants(session=(1, 3))) == [2]
    assert answer(session, {2: 5}) == [2]


def test_what_is_not_settled_is_looked_at_again() -> None:
    """A partition with an error, or whose follower has not caught up, stays in every fetch."""
    session = opened(FetchSessions(random.Random(1), 10), FetchedBy(2))
    read(session, wants(0, 1))
    results = [FetchResult(TOPIC, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, -1), FetchResult(TOPIC, 1, 0, 0, 0, 0)]
    session.answer(results, lambda _: False)
    assert read(session, wants(session=(1, 1))) == [0, 1]


def test_idle_fetches_stand_still_at_a_change() -> None:
    """While nothing changes, each fetch of the session is one of the partition; from an append on none is."""
    leader = LeaderState(
        broker_id=1, replicas=(1, 2), isr=(1, 2), leader_epoch=0, partition_epoch=0, log_end_offset=5,
        high_watermark=5, min_insync_replicas=1, lag_time_max_ms=1000, now_ms=0, eligible=lambda _: True,
    )  # fmt: skip
    session = opened(FetchSessions(random.Random(1), 10), FetchedBy(2))
    session.begin(wants(0))
    leader.fetched(2, 5, 5, 0)
    partition = session.partitions[TOPIC, 0]
    leader.followers[2].idle_fetches = partition
    partition.settled()
    session.fetched_ms = 9000
    assert leader.check_lag(6, 10_000) is None, "it was at the end at 9000"
    partition.changed(wakes=True)
    session.fetched_ms = 20_000
    proposal = leader.check_lag(6, 20_001)
    assert proposal is not None, "it has not asked for 6 since"
    assert proposal.members == (1,)


class Traffic:
    """What followers ask of the leaders and what they are told, as (session epoch, partitions)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[int, list[int]]] = []
        self.told: list[list[int]] = []
        parse, build = fetch_handler.parse_request, fetch_handler.build_response

        def parse_request(body: memoryview, version: int) -> FetchRequest:
            request = parse(body, version)
            if request.replica_id >= 0:
                self.asked.append((request.session_epoch, sorted(each.partition for each in request.partitions)))
            return request

        def build_response(*args: object) -> object:
            if args[3]:
                self.told.append(sorted(each.partition for each in args[4]))  # type: ignore[attr-defined]
            return build(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(fetch_handler, "parse_request", parse_request)
        monkeypatch.setattr(fetch_handler, "build_response", build_response)


def test_an_idle_cluster_names_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followers go on asking, of nothing; a write names its own partition and no other, and commits."""
    traffic = Traffic(monkeypatch)

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await cluster.create_topic("many", PARTITIONS)
        await asyncio.sleep(3)
        traffic.asked.clear()
        traffic.told.clear()
        await asyncio.sleep(3)
        assert len(traffic.asked) >= 6
        assert all(epoch > 0 and not named for epoch, named in traffic.asked)
        assert not any(traffic.told)
        leader = Client(await cluster.connect(cluster.leader("many", 3)))
        assert (await leader.produce("many", batch(b"a"), partition=3)).error is ErrorCode.NONE
        await asyncio.sleep(2)
        assert {number for _, named in traffic.asked for number in named} == {3}
        for broker_id in cluster.broker_ids:
            assert cluster.nodes[broker_id].replicas.partitions["many", 3].high_watermark == 1

    with_topic(check, brokers=3)


def test_a_quiet_follower_stays_in_sync_and_a_dead_one_does_not() -> None:
    """Idle for longer than replica.lag.time.max.ms, then a write: who fetches stays, who is cut off leaves."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.nodes[cluster.leader(TOPIC)]
        partition = leader.replicas.partitions[TOPIC, 0]
        await asyncio.sleep(30)
        shrinks = leader.counters.isr_shrinks
        await client.produce(TOPIC, batch(b"a"), acks=1)
        partition.check_replicas(int(asyncio.get_running_loop().time() * 1000))
        assert partition.leader is not None
        assert partition.leader.isr.pending is None
        await asyncio.sleep(30)
        assert leader.counters.isr_shrinks == shrinks
        at = cluster.leader(TOPIC)
        far = next(broker for broker, node in cluster.nodes.items() if broker != at and not node.control.is_controller)
        for link in ((f"b{far}", f"b{at}"), (f"b{at}", f"b{far}")):
            cluster.network.cut(*link)
        await client.produce(TOPIC, batch(b"b"), acks=1)
        await cluster.until(lambda: len(cluster.isr(TOPIC)) == 2)
        for link in ((f"b{far}", f"b{at}"), (f"b{at}", f"b{far}")):
            cluster.network.heal(*link)
        await cluster.until(lambda: len(cluster.isr(TOPIC)) == 3)

    with_topic(check, brokers=3)


@pytest.mark.parametrize("slots", ["0", "1000"])
def test_replication_does_not_need_sessions(slots: str) -> None:
    """With none to be had followers send full fetches; what is written is committed and equal either way."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        for number in range(20):
            assert (await client.produce(TOPIC, batch(b"%d" % number))).base_offset == number
        sessions = [len(node.replicas.sessions) for node in cluster.nodes.values()]
        assert (sum(sessions) > 0) == (slots != "0")
        await asyncio.sleep(1)
        assert len({cluster.log_bytes(broker_id, TOPIC) for broker_id in cluster.broker_ids}) == 1

    with_topic(check, brokers=3, max_incremental_fetch_session_cache_slots=slots)


def test_followers_learn_where_an_idle_log_begins() -> None:
    """Retention moves the log's start without an append: the leader tells, and cuts nothing off from followers."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        for number in range(5):
            await client.produce(TOPIC, batch(b"%d" % number))
        await asyncio.sleep(2)
        cluster.nodes[cluster.leader(TOPIC)].replicas.partitions[TOPIC, 0].log.advance_log_start_offset(3)
        logs = [node.replicas.partitions[TOPIC, 0].log for node in cluster.nodes.values()]
        await cluster.until(lambda: {log.log_start_offset for log in logs} == {3})

    with_topic(check, brokers=3)


def test_errors_of_sessions_on_the_wire() -> None:
    """A follower gets an id, full answers to a full fetch, and the errors at the top level, with the id 0."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.leader(TOPIC)
        follower = next(broker for broker in cluster.broker_ids if broker != leader)
        life = cluster.nodes[follower].control.broker_epoch
        await cluster.crash(follower)
        peer = Client(await cluster.connect(leader, "PEERS"))

        async def ask(session_id: int, epoch: int, *numbers: int) -> fetch.FetchResponse:
            wanted = [FetchPartition(TOPIC, number, -1, 0, -1, 0, 1000) for number in numbers]
            request = FetchRequest(follower, 0, 1, 1000, 0, session_id, epoch, wanted)
            data = fetch.build_request(12, peer.connection.next_correlation_id(), client_id(follower, life), request)
            return fetch.parse_response(await peer.connection.send_raw(data), 12)

        full = await ask(0, 0, 0)
        assert full.session_id > 0
        assert [each.partition for each in full.partitions] == [0]
        assert (await ask(full.session_id, 1)).partitions == []
        wrong = await ask(full.session_id, 7)
        assert (wrong.error_code, wrong.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
        unknown = await ask(full.session_id ^ 1, 2)
        assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        alone = await ask(full.session_id, -1, 0)
        assert (alone.session_id, len(alone.partitions)) == (0, 1)
        assert (await ask(full.session_id, 2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert await client_of_leader(cluster)

    with_topic(check, brokers=3)


def test_who_is_no_broker_gets_no_session() -> None:
    """Replica ids that are made up keep nothing; a session ends when its follower is no registered broker any more."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        manager = cluster.nodes[1].replicas
        for replica_id in range(100, 200):
            assert manager.admit(wants(0), FetchedBy(replica_id)) is None
        assert len(manager.sessions) == 0
        manager.brokers_changed({1, 2})
        session = manager.admit(wants(0), FetchedBy(2))
        assert session is not None
        manager.brokers_changed({1})
        assert len(manager.sessions) == 0

    with_topic(check)
