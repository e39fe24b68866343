"""No producer id is ever handed out twice: two brokers, every kind of failure of the store, a controller that changes.

hypothesis draws the story; after each everybody gets ids again.
"""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.control.links.producer_ids import CoordinatorLoading, NoProducerIds
from cluster.controller.producer_ids import BLOCK_SIZE, MAX_PRODUCER_ID
from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.metadata.store import SetData
from cluster.metadata.znodes import ProducerIdBlockNode
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import Cluster, serve
from tests.support.virtual_time import run

BROKERS = st.sampled_from([1, 2])
STEPS = st.one_of(
    st.tuples(st.just("take"), BROKERS, st.sampled_from([1, 850, 950, 1050])),
    st.tuples(st.just("lose answers"), BROKERS, st.integers(1, 3)),
    st.tuples(st.just("lose requests"), BROKERS, st.integers(1, 3)),
    st.tuples(st.just("cut"), BROKERS, st.sampled_from([1, 50, 500, 3000])),
    st.tuples(st.just("expire"), BROKERS, st.just(0)),
    st.tuples(st.just("restart"), BROKERS, st.just(0)),
    st.tuples(st.just("pass"), BROKERS, st.sampled_from([1, 10, 100, 5000])),
)


async def take(cluster: Cluster, broker_id: int, count: int, taken: list[int]) -> None:
    """As many as are at hand soon; what is not is asked for the next time."""
    broker = cluster.brokers[broker_id]
    for _ in range(count):
        try:
            taken.append(await broker.plane.next_producer_id())
        except CoordinatorLoading:
            await asyncio.sleep(0.03)


async def tell(steps: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()
    await cluster.start(1, 2)
    taken: list[int] = []
    for action, broker_id, number in steps:
        store = cluster.brokers[broker_id].store
        if action == "take":
            await take(cluster, broker_id, number, taken)
        elif action == "cut":
            store.cut()
            await asyncio.sleep(number / 1000)
            store.heal()
        elif action == "expire":
            store.expire()
        elif action == "restart":
            await cluster.brokers[broker_id].crash()
            await cluster.start(broker_id)
        elif action == "pass":
            await asyncio.sleep(number / 1000)
        else:
            for _ in range(number):
                (store.lose_next_answer if action == "lose answers" else store.lose_next_request)()
    for broker_id in (1, 2):
        got: list[int] = []
        await cluster.until(lambda broker_id=broker_id: cluster.brokers[broker_id].plane.broker_epoch >= 0)
        async with asyncio.timeout(60):
            while len(got) < 5:
                await take(cluster, broker_id, 5, got)
        taken += got
    assert len(set(taken)) == len(taken)
    newest = json.loads(cluster.tree.get(PRODUCER_ID_BLOCK)[0])
    assert int(newest["block_end"]) == int(newest["block_start"]) + BLOCK_SIZE - 1
    assert max(taken) <= int(newest["block_end"])
    await cluster.stop()


@given(st.lists(STEPS, max_size=8))
def test_no_id_is_handed_out_twice(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is lost, cut, expired or restarted."""
    run(tell(steps))


def test_the_last_ids_are_handed_out_and_no_more() -> None:
    """The block that ends at 2^63 - 1 is the last one; then clients hear an error that nothing mends."""

    async def body() -> None:
        cluster = Cluster()
        [first] = await cluster.start(1)
        await cluster.until(lambda: first.plane._producer_ids._supply._ahead is not None)
        node = ProducerIdBlockNode(1, 0, MAX_PRODUCER_ID - BLOCK_SIZE)
        cluster.tree.multi(0, [SetData(PRODUCER_ID_BLOCK, node.encode(), -1)])
        taken: list[int] = []
        failures: list[NoProducerIds] = []
        while not failures:
            try:
                await take(cluster, 1, 1, taken)
            except NoProducerIds as error:
                failures.append(error)
        assert taken[-1] == MAX_PRODUCER_ID
        assert len(set(taken)) == len(taken) == 2 * BLOCK_SIZE
        assert failures[0].error_code is ErrorCode.UNKNOWN_SERVER_ERROR
        request = request_class(ApiKey.ALLOCATE_PRODUCER_IDS)(broker_id=1, broker_epoch=first.plane.broker_epoch)
        assert (await serve(first.plane, request, 0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        await cluster.stop()

    run(body())


def test_a_former_life_and_a_stranger_get_no_ids() -> None:
    """STALE_BROKER_EPOCH and BROKER_ID_NOT_REGISTERED, and nothing is written."""

    async def body() -> None:
        cluster = Cluster()
        [first] = await cluster.start(1)
        await cluster.until(lambda: first.plane._producer_ids._supply._ahead is not None)
        before = cluster.tree.get(PRODUCER_ID_BLOCK)
        request = request_class(ApiKey.ALLOCATE_PRODUCER_IDS)
        for broker_id, epoch, code in (
            (1, first.plane.broker_epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
            (9, 1, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ):
            answer = await serve(first.plane, request(broker_id=broker_id, broker_epoch=epoch), 0)
            assert answer.error_code == code
        assert cluster.tree.get(PRODUCER_ID_BLOCK) == before
        await cluster.stop()

    run(body())
