"""GroupTimers: what is due fires in order, once, and never more of it in a turn of the loop than there is time for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count

from cluster.broker.groups.group_timers import GroupTimers
from cluster.broker.pauses import SHARE_NS, Shares
from cluster.coordinator.group.decisions import TimerChange, TimerKind, TimerName
from tests.support.virtual_time import run

#: Looks at the clock for which this is the time between two.
TICK_NS = SHARE_NS // 10
NOW_MS = 1_000_000
MANY = 10_000


def name(number: int) -> TimerName:
    return TimerName("g", TimerKind.SESSION, f"{number}")


class Scene:
    """Timers of a broker whose every look at the clock takes a while. ``fired`` is what fired in each turn."""

    def __init__(self) -> None:
        ticks = count(step=TICK_NS)
        self.loop = asyncio.get_running_loop()
        self.shares = Shares(lambda: next(ticks))
        self.timers = GroupTimers(self.loop, self.shares, self.fire)
        self.fired: list[tuple[TimerName, int, float]] = []
        self.turns: list[int] = []
        self._is_turn_noted = False

    def fire(self, fired: TimerName, deadline_ms: int) -> None:
        self.fired.append((fired, deadline_ms, self.loop.time()))
        if not self._is_turn_noted:
            self._is_turn_noted = True
            self.turns.append(0)
            self.loop.call_soon(self._turn_ended)
        self.turns[-1] += 1

    def _turn_ended(self) -> None:
        self._is_turn_noted = False

    def set(self, number: int, after_ms: int | None) -> None:
        self.timers.change(TimerChange(name(number), None if after_ms is None else NOW_MS + after_ms), NOW_MS)

    @property
    def numbers(self) -> list[int]:
        return [int(fired.member_id) for fired, _, _ in self.fired]


def scene(check: Callable[[Scene], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        await check(Scene())

    run(main())


def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    """Each once, when it is due; those of one deadline in the order in which they were set."""

    async def check(made: Scene) -> None:
        for number, after_ms in enumerate([30, 10, 20, 10, -5]):
            made.set(number, after_ms)
        await asyncio.sleep(1)
        assert made.numbers == [4, 1, 3, 2, 0]
        assert [deadline_ms - NOW_MS for _, deadline_ms, _ in made.fired] == [-5, 10, 10, 20, 30]
        assert [round(at_s * 1000) for _, _, at_s in made.fired] == [0, 10, 10, 20, 30]
        assert len(made.timers) == 0

    scene(check)


def test_a_timer_that_is_set_again_or_cancelled() -> None:
    """The last word counts, whether that is sooner or later."""

    async def check(made: Scene) -> None:
        for number in range(4):
            made.set(number, 20)
        made.set(0, 50)
        made.set(1, 10)
        made.set(2, None)
        await asyncio.sleep(1)
        assert made.numbers == [1, 3, 0]
        assert [round(at_s * 1000) for _, _, at_s in made.fired] == [10, 20, 50]
        made.set(5, 10)
        made.timers.close()
        await asyncio.sleep(1)
        assert len(made.fired) == 3

    scene(check)


def test_timers_that_are_due_together_share_turns() -> None:
    """Others have their turn between them; none is left out."""

    async def check(made: Scene) -> None:
        for number in range(100):
            made.set(number, 10)
        await asyncio.sleep(1)
        assert made.numbers == list(range(100))
        assert max(made.turns) < 2 * SHARE_NS / TICK_NS

    scene(check)


def test_a_timer_that_fails_does_not_keep_others() -> None:
    """The loop is told, and the next ones fire."""

    async def check(made: Scene) -> None:
        told: list[object] = []
        made.loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        fire, failure = made.timers._fired, ValueError("it failed")

        def fail(fired: TimerName, deadline_ms: int) -> None:
            fire(fired, deadline_ms)
            if fired == name(0):
                raise failure

        made.timers._fired = fail
        for number in range(3):
            made.set(number, 10)
        await asyncio.sleep(1)
        assert (made.numbers, told) == ([0, 1, 2], [failure])

    scene(check)


def test_timers_that_are_set_again_and_again_are_not_kept() -> None:
    """Every heartbeat sets one, for minutes."""

    async def check(made: Scene) -> None:
        for _ in range(MANY):
            made.set(1, 600_000)
        assert len(made.timers._heap) < MANY / 5
        made.timers.close()

    scene(check)
