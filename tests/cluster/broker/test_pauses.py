"""Long work of many requests: each continues in its turn, and together they take little more of it than one."""

from __future__ import annotations

import asyncio

from cluster.broker.pauses import LEAST_SHARE_NS, OLDEST_EACH, SHARE_NS, SHARES_NS, Pauses, Shares


class Loop:
    """A clock that work moves, and the turns of the loop as they are seen."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.turns = [0]
        self.shares = Shares(lambda: self.now_ns)

    def work(self, took_ns: int) -> None:
        self.now_ns += took_ns
        self.turns[-1] += took_ns

    async def watch(self) -> None:
        while True:
            self.turns.append(0)
            await asyncio.sleep(0)


def longest_turn(workers: int, steps: int, step_ns: int) -> tuple[int, list[int]]:
    """With that many workers; also the order in which they ended."""
    ended: list[int] = []

    async def main() -> int:
        loop = Loop()
        watch = asyncio.create_task(loop.watch())

        async def worker(number: int) -> None:
            pause = Pauses(loop.shares)
            for _ in range(steps * (1 + number % 2)):
                loop.work(step_ns)
                await pause()
            ended.append(number)

        await asyncio.gather(*(worker(number) for number in range(workers)))
        watch.cancel()
        return max(loop.turns)

    return asyncio.run(main()), ended


def test_many_together_take_little_more_than_one() -> None:
    """However many begin in one turn: those that come when it is full do one step, and wait for a share."""
    step_ns = 10_000
    alone, _ = longest_turn(1, 1000, step_ns)
    together, ended = longest_turn(400, 200, step_ns)
    assert alone <= SHARE_NS + step_ns
    # Nobody is turned away here, as nobody counts who begins: each of these does one step in the first turn.
    assert together <= 2 * SHARE_NS + 400 * step_ns
    assert sorted(ended) == list(range(400))


def test_no_more_begins_in_a_turn_that_is_full() -> None:
    """What is small may begin for as long again as the share of what is large."""

    async def main() -> None:
        loop = Loop()
        begun = 0
        while not loop.shares.is_full():
            end_ns = loop.shares.first_end_ns()
            assert loop.now_ns < end_ns <= 2 * SHARE_NS
            loop.work(LEAST_SHARE_NS)
            begun += 1
        assert begun == 2 * SHARE_NS // LEAST_SHARE_NS
        assert loop.shares.first_end_ns() <= loop.now_ns
        await asyncio.sleep(0)
        assert not loop.shares.is_full()

    asyncio.run(main())


def test_short_work_does_not_wait_for_long_work() -> None:
    """A worker with half as much to do ends before those with more: it is round robin."""
    _, ended = longest_turn(10, 1000, 100_000)
    assert [number % 2 for number in ended] == [0] * 5 + [1] * 5


def test_what_begins_goes_before_what_continues() -> None:
    """Two hundred have had many shares; one that had none waits for none of them, or for one: the oldest has its turn
    at times."""

    async def main() -> None:
        loop, ended = Loop(), 0

        async def worker() -> None:
            nonlocal ended
            for had in range(1, 8):
                end_ns = await loop.shares.next(had)
                loop.work(end_ns - loop.now_ns)
            ended += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(worker())
            for _ in range(100):
                await asyncio.sleep(0)
            for _ in range(32):
                since_ns = loop.now_ns
                await loop.shares.next()
                assert loop.now_ns - since_ns <= 2 * SHARES_NS[-1]
            assert ended == 0

    asyncio.run(main())


def test_the_oldest_has_its_turn_though_others_begin_all_the_time() -> None:
    """A share in sixteen, so that nobody waits forever."""

    async def main() -> None:
        loop, begun = Loop(), 0
        oldest = asyncio.create_task(loop.shares.next(4))
        while not oldest.done():
            await loop.shares.next()
            begun += 1
        assert begun <= OLDEST_EACH

    asyncio.run(main())


def test_what_cannot_be_divided_waits_for_a_turn_of_its_own() -> None:
    """When the turn is used up, and not otherwise."""

    async def main() -> None:
        loop = Loop()
        assert not loop.shares.is_over()
        loop.work(SHARE_NS)
        assert loop.shares.is_over()
        longest = [0]

        async def worker() -> None:
            await loop.shares.fresh()
            assert not loop.shares.is_over()
            loop.work(10 * SHARE_NS)
            longest[0] = max(longest[0], loop.turns[-1])

        loop.turns.append(0)
        watch = asyncio.create_task(loop.watch())
        await asyncio.gather(*(worker() for _ in range(50)))
        watch.cancel()
        assert longest == [10 * SHARE_NS]

    asyncio.run(main())


def test_one_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    """The next one in the queue gets its share."""

    async def main() -> None:
        loop = Loop()
        gone = asyncio.create_task(loop.shares.next())
        waits = asyncio.create_task(loop.shares.next())
        await asyncio.sleep(0)
        gone.cancel()
        async with asyncio.timeout(5):
            assert await waits == SHARES_NS[0]

    asyncio.run(main())
