"""What waits behind an unanswered request is bounded by bytes; answers keep their order, and everything is answered."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.admission import CHECK_EACH_S, Admission
from cluster.broker.backlog import MAX_UNANSWERED, MAX_WAITING_BYTES, Backlog, answer_bytes
from cluster.broker.exchange import PARKED_BYTES, Exchange
from cluster.broker.replicas.purgatory import DelayedProduce
from cluster.broker.replicas.record_deletion import DelayedDeletion
from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.broker.replicas.waiters import Waiters
from cluster.broker.server import LAST_CHECKS
from cluster.config.broker import validate
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import encode_request, request_class
from cluster.protocol.produce import ProduceResult, appended
from tests.cluster.broker.scenes import TOPIC, cut_followers, with_topic
from tests.cluster.broker.test_connection import Bench, frame, raw
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

SIZES = st.sampled_from([0, 1, 1000, MAX_WAITING_BYTES // 3, MAX_WAITING_BYTES, 4 * MAX_WAITING_BYTES])


@given(st.lists(st.tuples(st.sampled_from(["start", "change", "leave"]), SIZES, st.integers(0, 200)), max_size=300))
def test_what_is_kept_behind_the_first_has_a_bound(steps: list[tuple[str, int, int]]) -> None:
    """Whatever requests keep, the next starts only while the others keep at most the bound; alone it always starts."""
    backlog = Backlog()
    kept: list[int] = []
    is_paused = False
    for step, size_bytes, which in steps:
        if step == "start" and not is_paused:
            assert sum(kept[1:]) <= MAX_WAITING_BYTES
            assert len(kept) < MAX_UNANSWERED
            kept.append(size_bytes)
            backlog.change(0, size_bytes)
        elif step == "change" and kept:
            index = which % len(kept)
            backlog.change(kept[index], size_bytes)
            kept[index] = size_bytes
        elif step == "leave" and kept:
            backlog.change(kept.pop(0), 0)
        assert backlog.kept_bytes == sum(kept)
        is_paused = not backlog.may_start(len(kept), kept[0] if kept else 0, is_paused=is_paused)
        assert not (is_paused and len(kept) <= 1)


@given(
    st.lists(st.tuples(st.booleans(), SIZES), min_size=1, max_size=150),
    st.lists(st.tuples(st.integers(0, 200), SIZES), max_size=200),
)
def test_a_connection_keeps_the_bound_and_answers_all(
    requests: list[tuple[bool, int]], answers: list[tuple[int, int]]
) -> None:
    """Requests that wait and others, answered in any order: the bound holds, nothing is stuck, answers have the order
    of requests."""
    bench = Bench()
    unsent = [(waits, size, number) for number, (waits, size) in enumerate(requests)]
    unanswered = []

    def read() -> None:
        while unsent and bench.connection.reading:
            assert sum(each.kept_bytes for each in list(bench.client._exchanges)[1:]) <= MAX_WAITING_BYTES
            waits, size_bytes, number = unsent.pop(0)
            before = len(bench.waiting)
            bench.client.on_frame(frame(ApiKey.PRODUCE))
            [exchange] = bench.waiting[before:]
            exchange.correlation_id = number
            if waits:
                bench.client.keep(exchange, size_bytes)
                bench.client._pace()
                unanswered.append(exchange)
            else:
                exchange.respond([number.to_bytes(4, "big") + bytes(size_bytes)])

    read()
    for which, size_bytes in [*answers, *([(0, 0)] * len(requests))]:
        if unanswered:
            exchange = unanswered.pop(which % len(unanswered))
            exchange.respond([exchange.correlation_id.to_bytes(4, "big") + bytes(size_bytes)])
        read()
    sent = [int.from_bytes(data[:4], "big") for data in bench.connection.sent]
    assert sent == list(range(len(requests)))
    assert (bench.client._backlog.kept_bytes, bench.connection.reading) == (0, True)


def test_finished_answers_behind_a_request_that_waits() -> None:
    """Large answers behind a produce that waits: some are made at once, the others when it is answered."""
    bench = Bench()
    bench.at_once = [bytes(100_000)]
    asked = 0

    def read() -> None:
        nonlocal asked
        while asked < 50 and bench.connection.reading:
            bench.client.on_frame(frame(ApiKey.METADATA))
            asked += 1

    bench.client.on_frame(frame(ApiKey.PRODUCE))
    read()
    assert asked == 3
    bench.waiting[0].respond([b"first"])
    read()
    assert (asked, len(bench.connection.sent)) == (50, 51)


def test_one_request_may_always_start_behind_the_first() -> None:
    """However much the first one keeps: a produce for very many partitions does not end pipelining."""
    bench = Bench()
    bench.client.on_frame(frame(ApiKey.PRODUCE))
    bench.client.keep(bench.waiting[0], 100 * MAX_WAITING_BYTES)
    bench.client.on_frame(frame(ApiKey.PRODUCE))
    assert bench.connection.reading
    bench.waiting[1].respond([bytes(2 * MAX_WAITING_BYTES)])
    assert not bench.connection.reading
    bench.waiting[0].respond([b""])
    assert bench.connection.reading


def test_a_fetch_that_waits_counts_for_its_partitions() -> None:
    """Behind a produce that waits; as the first of its connection it holds nothing up."""
    bench = Bench()

    class Fetch:
        def finish_now(self) -> None:
            fetch.respond([b"nothing"])

        def abandon(self) -> None: ...

    for _ in range(2):
        bench.client.on_frame(frame(ApiKey.PRODUCE))
    produce, fetch = bench.waiting
    fetch.park(Fetch(), MAX_WAITING_BYTES // PARKED_BYTES + 1)
    bench.client._pace()
    assert not bench.connection.reading
    produce.respond([b"done"])
    assert bench.connection.reading
    bench.client.on_frame(frame(ApiKey.METADATA))
    assert bench.connection.sent == [b"done", b"nothing", b"now"]


def test_what_a_produce_keeps_is_estimated_as_measured() -> None:
    """Its results and its places at the partitions; texts of errors as they are."""

    async def main() -> None:
        wheel = TimerWheel(asyncio.get_running_loop())
        for partitions in (1, 20, 600):
            places = [Waiters() for _ in range(partitions)]
            tracemalloc.start()
            gc.collect()
            before_bytes = tracemalloc.get_traced_memory()[0]
            kept = []
            for number in range(20):
                results = [appended("t", index, 0, 10_000 + number, -1, 0) for index in range(partitions)]
                kept.append(DelayedProduce(results, range(partitions), lambda _: None, wheel, 60_000))
                for index, place in enumerate(places):
                    place.add_produce(20_000 + number, 5, kept[-1], index)
            measured_bytes = (tracemalloc.get_traced_memory()[0] - before_bytes) / len(kept)
            tracemalloc.stop()
            assert 0.8 < kept[0].size_bytes / measured_bytes < 1.5, (partitions, kept[0].size_bytes, measured_bytes)
        text = "x" * 30_000
        wrong = ProduceResult("t", 0, ErrorCode.INVALID_RECORD, error_message=text, record_errors=[(1, text)])
        refused = DelayedProduce([wrong, appended("t", 1, 0, 0, -1, 0)], [1], lambda _: None, wheel, 60_000)
        assert 60_000 < refused.size_bytes < 65_000
        assert 70_000 < answer_bytes([b"x" * 70_000, memoryview(b"x")]) < 71_000

    run(main())


PARTITIONS = 250
REQUESTS = 40


def produce_to(topic: str, partitions: int, number: int) -> bytes:
    request = request_class(ApiKey.PRODUCE)
    records = batch(b"%d" % number)
    parts = [request.TopicProduceData.PartitionProduceData(index=i, records=records) for i in range(partitions)]
    message = request(
        transactional_id=None,
        acks=-1,
        timeout_ms=3_600_000,
        topic_data=[request.TopicProduceData(name=topic, partition_data=parts)],
    )
    return encode_request(message, 9, number, "c")


def test_produces_that_wait_for_followers() -> None:
    """acks=all to many partitions whose followers are away: few wait, others are not read, none is forgotten."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        assert cluster.leader(TOPIC) == 1
        await cluster.create_topic("many", PARTITIONS)
        manager = cluster.nodes[1].replicas
        mine = sum(key[0] == "many" and part.leader is not None for key, part in manager.partitions.items())
        cuts = cut_followers(cluster)
        sender = await raw(cluster)
        for number in range(REQUESTS):
            sender.connection.send_frame([produce_to("many", PARTITIONS, number)])
        await asyncio.sleep(1)
        waiting = manager.wheel.waiting(DelayedProduce)
        assert 2 <= waiting <= 3 + MAX_WAITING_BYTES // (360 * mine)
        for cut in cuts:
            cluster.network.heal(*cut)
        await cluster.until(lambda: len(sender.frames) == REQUESTS)
        assert [int.from_bytes(data[:4], "big") for data in sender.frames] == list(range(REQUESTS))

    with_topic(check, brokers=2, replicas=2, replica_lag_time_max_ms="600000")


def test_who_is_gone_leaves_nothing_that_waits() -> None:
    """A client whose connection breaks: its produces wait no more, and everything that it sent is in the log."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        manager = cluster.nodes[1].replicas
        cuts = cut_followers(cluster)
        sender = await raw(cluster)
        for number in range(REQUESTS):
            sender.connection.send_frame([produce_to(TOPIC, 1, number)])
        await asyncio.sleep(1)
        assert manager.wheel.waiting(DelayedProduce) == REQUESTS
        sender.connection.abort()
        await asyncio.sleep(1)
        assert manager.wheel.waiting(DelayedProduce) == 0
        waiters = manager.partitions[TOPIC, 0].waiters
        assert int(repr(waiters).split()[1]) < 20
        for cut in cuts:
            cluster.network.heal(*cut)
        assert (await client.produce(TOPIC, batch(b"last"))).base_offset == REQUESTS

    with_topic(check, brokers=2, replicas=2, replica_lag_time_max_ms="600000")


def test_who_has_closed_one_end_is_not_waited_for_long() -> None:
    """It may read still: what waits for followers is answered after some seconds, whatever its timeout."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        cut_followers(cluster)
        sender = await raw(cluster)
        sender.connection.send_frame([produce_to(TOPIC, 1, 7)])
        sender.connection.send_eof()  # type: ignore[attr-defined]
        async with asyncio.timeout(2 * CHECK_EACH_S * LAST_CHECKS):
            await sender.ended.wait()
        [answer] = sender.frames
        assert (answer[:4], ErrorCode.REQUEST_TIMED_OUT.to_bytes(2, "big") in answer) == ((7).to_bytes(4, "big"), True)

    with_topic(check, brokers=2, replicas=2, replica_lag_time_max_ms="600000")


class Waits:
    """A request that waits for other brokers."""

    size_bytes = 1000

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.abandoned = 0
        exchange.wait(self)

    def finish_now(self) -> None:
        self.exchange.respond([b"late"])

    def abandon(self) -> None:
        self.abandoned += 1


def test_who_has_left_is_noticed_also_while_reading_is_paused() -> None:
    """A full connection hears of no end: it is checked, and answers what waits; who stays is waited for."""

    async def main() -> None:
        bench = Bench()
        for _ in range(MAX_UNANSWERED):
            bench.client.on_frame(frame(ApiKey.PRODUCE))
        for exchange in bench.waiting:
            Waits(exchange)
        config = validate({"broker.id": "1", "zookeeper.connect": "memory", "connections.max.idle.ms": "-1"})
        admission = Admission(config, bench.counters)
        admission.enter(bench.client)
        admission.start()
        await asyncio.sleep(100)
        assert bench.connection.sent == []
        bench.connection.left = True
        await asyncio.sleep(2 * CHECK_EACH_S * LAST_CHECKS)
        assert bench.connection.sent == [b"late"] * MAX_UNANSWERED
        admission.close()

    run(main())


def test_what_waits_is_abandoned_once() -> None:
    """When its connection is closed, from either end; also what begins to wait after that."""

    async def main() -> None:
        for is_refused in (True, False):
            bench = Bench()
            for _ in range(2):
                bench.client.on_frame(frame(ApiKey.PRODUCE))
            before = Waits(bench.waiting[0])
            if is_refused:
                bench.client.refuse("no reason")
            bench.client.on_closed("closed")
            after = Waits(bench.waiting[1])
            assert (before.abandoned, after.abandoned) == (1, 1)

    run(main())


@pytest.mark.parametrize("times", [1, 2000], ids=["small", "large"])
def test_a_deletion_of_who_is_gone_waits_no_more(times: int) -> None:
    """DeleteRecords that waits for followers, also one that is decoded beside the loop."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        assert (await client.produce(TOPIC, batch(b"a"), acks=-1)).error == 0
        manager = cluster.nodes[1].replicas
        cut_followers(cluster)
        request = request_class(ApiKey.DELETE_RECORDS)
        asked = request.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=0, offset=-1)
        topics = [request.DeleteRecordsTopic(name=TOPIC, partitions=[asked] * times)]
        sender = await raw(cluster)
        sender.connection.send_frame([encode_request(request(topics=topics, timeout_ms=3_600_000), 2, 7, "c")])
        await cluster.until(lambda: manager.wheel.waiting(DelayedDeletion) == 1)
        sender.connection.abort()
        await asyncio.sleep(1)
        assert manager.wheel.waiting(DelayedDeletion) == 0
        assert not cluster.failures

    with_topic(check, brokers=2, replicas=2, replica_lag_time_max_ms="600000")
