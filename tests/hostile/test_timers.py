"""Deadlines that nobody waits for any more cost nothing (H6)."""

from __future__ import annotations

import asyncio
import random
import tracemalloc

from cluster.broker.replicas.timer_wheel import TimerWheel
from tests.support.virtual_time import run


class Alarm:
    def __init__(self) -> None:
        self.expired_s: list[float] = []

    def expire(self) -> None:
        self.expired_s.append(asyncio.get_running_loop().time())


def test_cancelled_timers_are_forgotten_long_before_their_deadline() -> None:
    """A client that asks for another wait each time, up to 24.8 days, and takes none of them."""

    async def main() -> None:
        wheel, draw, alarm = TimerWheel(asyncio.get_running_loop()), random.Random(1), Alarm()
        tracemalloc.start()
        try:
            for _ in range(50_000):
                wheel.cancel(alarm, wheel.add(alarm, draw.randrange(2**31)))
            kept_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept_bytes < 1_000_000
        assert not alarm.expired_s

    run(main())


def test_those_that_are_waited_for_keep_their_deadline() -> None:
    """Whatever is forgotten meanwhile, of the same ticks and of others, in any order."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        wheel, draw = TimerWheel(loop), random.Random(2)
        kept: dict[int, Alarm] = {}
        dropped: list[tuple[Alarm, int]] = []
        for _ in range(20_000):
            delay = draw.randrange(20_000)
            if draw.random() < 0.02:
                wheel.add(kept.setdefault(delay, Alarm()), delay)
            else:
                alarm = Alarm()
                dropped.append((alarm, wheel.add(alarm, delay)))
            if dropped and draw.random() < 0.9:
                wheel.cancel(*dropped.pop(draw.randrange(len(dropped))))
        for alarm, tick in dropped:
            wheel.cancel(alarm, tick)
            wheel.cancel(alarm, tick)
        begun = loop.time()
        await asyncio.sleep(21)
        for delay, alarm in kept.items():
            assert [begun + delay / 1000 <= at <= begun + delay / 1000 + 0.0061 for at in alarm.expired_s] == [True]
        assert repr(wheel) == "<TimerWheel 0 waiting>"

    run(main())
