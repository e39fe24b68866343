"""Long work of many requests: each continues in its turn, and together they take little more of it than one."""

from __future__ import annotations

import asyncio

from cluster.broker.pauses import LEAST_SHARE_NS, SHARE_NS, Pauses, Shares


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
    """Each has half a millisecond for its first share if others have used up the turn; then one continues per turn."""
    step_ns = 100_000
    alone, _ = longest_turn(1, 1000, step_ns)
    together, ended = longest_turn(30, 1000, step_ns)
    assert alone <= SHARE_NS + step_ns
    assert together <= SHARE_NS + 30 * (LEAST_SHARE_NS + step_ns)
    assert sorted(ended) == list(range(30))


def test_short_work_does_not_wait_for_long_work() -> None:
    """A worker with half as much to do ends before those with more: it is round robin."""
    _, ended = longest_turn(10, 1000, 100_000)
    assert [number % 2 for number in ended] == [0] * 5 + [1] * 5


def test_what_cannot_be_divided_waits_for_a_turn_of_its_own() -> None:
    """When the turn is used up, and not otherwise."""

    async def main() -> None:
        loop = Loop()
        assert not loop.shares.is_over()
        loop.work(SHARE_NS)
        assert loop.shares.is_over()
        await loop.shares.next()
        await asyncio.sleep(0)
        assert not loop.shares.is_over()

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
            assert await waits == SHARE_NS

    asyncio.run(main())
