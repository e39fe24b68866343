"""One piece of work at a time: the lightest of those that wait, and now and then the oldest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.lane import OLDEST_EACH, LightestFirst, next_for_slot
from cluster.broker.portions import HEAVY, LARGE_BYTES, STRUCTURES_AT_ONCE, Beside, RequestQuota, is_large, weight_of
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class
from tests.support.virtual_time import run


def test_the_lightest_is_next_and_each_fourth_time_the_oldest() -> None:
    """Of two that are as light, the one that came first."""
    waiting = [(900, 1), (5, 3), (5, 2), (70, 4)]
    assert [next_for_slot(waiting, slot) for slot in range(1, OLDEST_EACH + 1)] == [2, 2, 2, 0]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 3))
def test_nothing_waits_forever(weights: list[int], slots: int) -> None:
    """Whatever comes after it, the heaviest has its slot when the older ones had theirs."""
    waiting = [(weight, arrival) for arrival, weight in enumerate(weights)]
    heavy = (10, len(weights))
    waiting.append(heavy)
    for count in range(1, OLDEST_EACH * len(waiting) + 1):
        index = next_for_slot(waiting, slots + count)
        if waiting.pop(index) == heavy:
            return
        waiting.append((0, 1000 + count))
    raise AssertionError(f"{heavy} still waits")


def test_small_work_does_not_wait_for_all_that_came_before() -> None:
    """And one that is given up is passed over, also when its slot has just come."""

    async def main() -> None:
        lane, order = LightestFirst(), list[str]()

        async def work(name: str, weight: int) -> None:
            async with lane.slot(weight) as slot:
                order.append(name if slot.has_waited else f"{name} at once")
                await asyncio.sleep(1)

        tasks = [asyncio.create_task(work(f"heavy {number}", 1000)) for number in range(4)]
        await asyncio.sleep(0.1)
        tasks.append(asyncio.create_task(work("light", 1)))
        await asyncio.sleep(0.1)
        tasks[1].cancel()
        await asyncio.sleep(0.81)
        # The light one has ended, heavy 2 has been told that it is next; it is given up before it continues.
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == ["heavy 0 at once", "light", "heavy 2", "heavy 3"]
        assert not lane.is_busy

    run(main())


def test_a_slot_that_is_given_up_is_another_s() -> None:
    """Cancelled between the end of the one before and its own beginning."""

    async def main() -> None:
        lane, order = LightestFirst(), list[str]()
        gate = asyncio.Event()

        async def first() -> None:
            async with lane.slot(1):
                await gate.wait()
            second.cancel()

        async def work(name: str) -> None:
            async with lane.slot(1):
                order.append(name)

        begun = asyncio.create_task(first())
        await asyncio.sleep(0)
        second = asyncio.create_task(work("second"))
        third = asyncio.create_task(work("third"))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(begun, second, third, return_exceptions=True)
        assert order == ["third"] and not lane.is_busy

    run(main())


def test_some_that_are_light_have_their_slots_together() -> None:
    """As many as come to the bound, and the next one is waited for: a lighter one does not slip in before it."""

    async def main() -> None:
        lane, order = LightestFirst(100), list[str]()
        ends = {name: asyncio.Event() for name in ("60", "40", "90", "70", "30")}

        async def work(name: str) -> None:
            async with lane.slot(int(name)):
                order.append(name)
                await ends[name].wait()

        tasks = {}
        for name in ends:
            tasks[name] = asyncio.create_task(work(name))
            await asyncio.sleep(0)
        assert order == ["60", "40"]
        ends["40"].set()
        await tasks["40"]
        await asyncio.sleep(0)
        assert order == ["60", "40", "30"]
        ends["60"].set()
        await tasks["60"]
        await asyncio.sleep(0)
        assert order == ["60", "40", "30", "70"]
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks.values())
        assert order == ["60", "40", "30", "70", "90"] and not lane.is_busy

    run(main())


def test_large_requests_have_room_until_their_handlers_let_go_of_them() -> None:
    """One that is heavy, and besides some that are light; a small one needs none. A slot is given back once."""

    async def main() -> None:
        room, order = RequestQuota(1000), list[str]()
        gate = asyncio.Event()

        async def work(name: str, size_bytes: int) -> None:
            async with room.of(size_bytes) as slot:
                order.append(name)
                if slot is not None and name.endswith("early"):
                    slot.leave()
                await gate.wait()

        sizes = {"heavy": HEAVY, "heavy, early": HEAVY, "heavier": HEAVY, "light": LARGE_BYTES, "small": 1000}
        tasks = [asyncio.create_task(work(name, size)) for name, size in sizes.items()]
        tasks += [asyncio.create_task(work(f"light {number}", LARGE_BYTES)) for number in range(2)]
        await asyncio.sleep(0)
        assert order == ["heavy", "light", "small", "light 0"]
        tasks[0].cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert order == ["heavy", "light", "small", "light 0", "heavy, early", "heavier"]
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order[-1] == "light 1" and "busy" not in repr(room)

    run(main())


def test_light_work_does_not_wait_for_heavy_work_that_runs() -> None:
    """A piece cannot be divided: what takes milliseconds runs besides one that takes a second. Heavy ones do not run
    together, nor do light ones."""

    async def main() -> None:
        begun, ends = list[str](), {name: asyncio.Event() for name in ("heavy", "heavier", "light", "lighter")}

        async def blocking(work: Callable[[], None]) -> None:
            work()
            await ends[begun[-1]].wait()

        beside = Beside(blocking)

        def start(name: str, weight: int) -> asyncio.Task[None]:
            return asyncio.create_task(beside.run(lambda: begun.append(name), weight=weight))

        heavy, heavier = start("heavy", LARGE_BYTES + 1), start("heavier", HEAVY)
        light, lighter = start("light", LARGE_BYTES), start("lighter", 1)
        await asyncio.sleep(0)
        assert begun == ["heavy", "light"]
        ends["light"].set()
        await light
        ends["heavy"].set()
        await heavy
        for task, name in ((lighter, "lighter"), (heavier, "heavier")):
            ends[name].set()
            await task
        assert begun == ["heavy", "light", "lighter", "heavier"]

    run(main())


def test_what_is_encoded_is_heavy_if_it_has_thousands_of_structures() -> None:
    """Of the answer to a moderate request nothing is known but what is in it."""
    topic = response_class(ApiKey.METADATA).MetadataResponseTopic
    for count, weight in ((STRUCTURES_AT_ONCE + 1, LARGE_BYTES), (5 * STRUCTURES_AT_ONCE, HEAVY)):
        message = response_class(ApiKey.METADATA)(topics=[topic(name="t", partitions=[])] * count)
        assert is_large(message)
        assert weight_of(message) == weight


def test_texts_make_an_answer_large() -> None:
    """A few that are long take as long to encode as many structures."""
    topic = response_class(ApiKey.DELETE_TOPICS).DeletableTopicResult
    answer = response_class(ApiKey.DELETE_TOPICS)
    assert not is_large(answer(responses=[topic(name="n" * 30_000)] * 30))
    assert is_large(answer(responses=[topic(name="n" * 30_000)] * 40))


def test_what_brokers_ask_each_other_waits_for_no_other() -> None:
    """However large: what the controller tells must not wait for markers that wait for followers."""

    async def main() -> None:
        beside = Beside(_never)
        async with beside.brokers.of(100 * HEAVY) as first, beside.brokers.of(100 * HEAVY) as second:
            assert first is None and second is None

    run(main())


async def _never(work: Callable[[], None]) -> None:
    raise AssertionError(f"{work} is run")
