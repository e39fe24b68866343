"""The memory of large requests: who has it, who waits, and who must go."""

from __future__ import annotations

import asyncio

from cluster.seams.frame_memory import STALLED_S, FrameMemory
from tests.support.virtual_time import run


class Connection:
    """One with a large request, as the memory sees it."""

    def __init__(self, memory: FrameMemory) -> None:
        self.memory = memory
        self.pending_bytes = 1
        self.is_reading = True
        self.has_gone_on = self.is_gone = False

    def take(self, size_bytes: int) -> bool:
        return self.memory.take(self, size_bytes)

    def trim(self) -> bool:
        if not self.pending_bytes:
            self.memory.give(self)
        return not self.pending_bytes

    def stalled(self) -> None:
        self.is_gone = True
        self.memory.give(self)

    def go_on(self) -> None:
        self.has_gone_on = True


def test_who_has_begun_can_finish_and_others_wait_in_their_order() -> None:
    """Room is given for the whole request; who comes later does not overtake; one is always served."""

    async def main() -> None:
        memory = FrameMemory(100, asyncio.get_running_loop())
        first, second, third, small = (Connection(memory) for _ in range(4))
        assert first.take(500)
        assert first.take(500)
        assert not second.take(60)
        assert not third.take(60)
        assert not small.take(10)
        memory.give(first)
        assert (second.has_gone_on, third.has_gone_on, small.has_gone_on) == (True, False, False)
        memory.give(second)
        assert third.has_gone_on and small.has_gone_on
        assert repr(memory) == "FrameMemory(70 of 100 bytes, 0 waiting)"

    run(main())


def test_buffers_that_nothing_is_in_are_given_back_first() -> None:
    """Who once sent a large request keeps nobody waiting."""

    async def main() -> None:
        memory = FrameMemory(100, asyncio.get_running_loop())
        idle, other = Connection(memory), Connection(memory)
        assert idle.take(80)
        idle.pending_bytes = 0
        assert other.take(80)

    run(main())


def test_who_has_begun_does_not_wait_behind_others() -> None:
    """A buffer grows in several steps for one request: it has room for all of it from the first of them."""

    async def main() -> None:
        memory = FrameMemory(100, asyncio.get_running_loop())
        first, second = Connection(memory), Connection(memory)
        assert first.take(80)
        assert not second.take(80)
        assert first.take(80)

    run(main())


def test_what_is_worked_on_counts_without_its_buffer() -> None:
    """A request whose buffer is given back, or whose connection is gone, keeps its room until it was answered."""

    async def main() -> None:
        memory = FrameMemory(100, asyncio.get_running_loop())
        working, other = Connection(memory), Connection(memory)
        assert working.take(80)
        memory.keep(working, 80)
        memory.give(working)
        assert repr(memory) == "FrameMemory(80 of 100 bytes, 0 waiting)"
        assert not other.take(60)
        memory.give(working)
        assert not other.has_gone_on
        memory.keep(working, 0)
        assert other.has_gone_on
        memory.keep(working, 0)
        assert repr(memory) == "FrameMemory(60 of 100 bytes, 0 waiting)"

    run(main())


def test_half_a_request_is_not_waited_for_long() -> None:
    """Who sends nothing more must go, but only when others wait; who sends on, or is not read from, may stay."""

    async def main() -> None:
        memory = FrameMemory(100, asyncio.get_running_loop())
        stalled, slow, held, waiting = (Connection(memory) for _ in range(4))
        assert stalled.take(30) and slow.take(30) and held.take(30)
        held.is_reading = False
        await asyncio.sleep(10 * STALLED_S)
        assert not waiting.take(30)
        for _ in range(2 * STALLED_S):
            slow.pending_bytes += 1
            await asyncio.sleep(1)
        assert waiting.has_gone_on
        assert (stalled.is_gone, slow.is_gone, held.is_gone) == (True, False, False)

    run(main())
