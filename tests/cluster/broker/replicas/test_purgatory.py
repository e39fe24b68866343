"""The wheel and the requests that wait on it: each ends once, at its time or before."""

from __future__ import annotations

import asyncio

from cluster.broker.replicas.purgatory import DelayedFetch, DelayedProduce
from cluster.broker.replicas.timer_wheel import TICK_MS, TimerWheel
from cluster.broker.replicas.waiters import Waiters
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceResult
from cluster.replication.leader import LeaderState
from tests.support.virtual_time import run


class Alarm:
    def __init__(self, wheel: TimerWheel, delay_ms: int) -> None:
        self.expired_s: list[float] = []
        self.tick = wheel.add(self, delay_ms)

    def expire(self) -> None:
        self.expired_s.append(asyncio.get_running_loop().time())


def test_deadlines_are_kept_within_a_tick() -> None:
    """Never early, at most one tick late, in any order of adding."""

    async def main() -> None:
        wheel = TimerWheel(asyncio.get_running_loop())
        alarms = {delay: Alarm(wheel, delay) for delay in (500, 3, 30_000, 3, 0, 7, 499)}
        await asyncio.sleep(31)
        for delay, alarm in alarms.items():
            (at,) = alarm.expired_s
            assert delay / 1000 <= at <= (delay + TICK_MS + 1) / 1000

    run(main())


def test_a_cancelled_alarm_is_silent() -> None:
    """Cancelling twice, or too late, does nothing."""

    async def main() -> None:
        wheel = TimerWheel(asyncio.get_running_loop())
        kept, dropped = Alarm(wheel, 10), Alarm(wheel, 10)
        wheel.cancel(dropped, dropped.tick)
        wheel.cancel(dropped, dropped.tick)
        await asyncio.sleep(1)
        wheel.cancel(kept, kept.tick)
        assert (len(kept.expired_s), dropped.expired_s) == (1, [])
        Alarm(wheel, 10)
        wheel.close()
        assert repr(wheel) == "<TimerWheel 0 waiting>"

    run(main())


def test_an_alarm_may_set_another() -> None:
    """An alarm may set another one from within its own expiry."""

    async def main() -> None:
        wheel = TimerWheel(asyncio.get_running_loop())
        second: list[Alarm] = []

        class Setting(Alarm):
            def expire(self) -> None:
                second.append(Alarm(wheel, 20))

        Setting(wheel, 10)
        await asyncio.sleep(1)
        assert len(second[0].expired_s) == 1

    run(main())


def results(count: int) -> list[ProduceResult]:
    return [ProduceResult("t", number, ErrorCode.NONE, 100 + number) for number in range(count)]


def test_a_produce_is_answered_when_its_last_part_is_settled() -> None:
    """Errors replace the offset of their part alone; settling twice changes nothing."""

    async def main() -> None:
        answers: list[list[ProduceResult]] = []
        wheel = TimerWheel(asyncio.get_running_loop())
        produce = DelayedProduce(results(3), [0, 2], answers.append, wheel, 1000)
        produce.settle(2, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        produce.settle(2, ErrorCode.NONE)
        assert (answers, produce.is_done) == ([], False)
        produce.settle(0, ErrorCode.NONE)
        await asyncio.sleep(2)
        (found,) = answers
        assert [(one.error_code, one.base_offset) for one in found] == [(0, 100), (0, 101), (6, -1)]

    run(main())


def test_a_produce_that_waits_too_long_timed_out() -> None:
    """Only the parts that nothing is known of."""

    async def main() -> None:
        answers: list[list[ProduceResult]] = []
        produce = DelayedProduce(results(2), [0, 1], answers.append, TimerWheel(asyncio.get_running_loop()), 50)
        produce.settle(1, ErrorCode.NONE)
        await asyncio.sleep(1)
        produce.settle(0, ErrorCode.NONE)
        assert [[one.error_code for one in found] for found in answers] == [[7, 0]]

    run(main())


def leading(high_watermark: int, leader_epoch: int = 3) -> LeaderState:
    return LeaderState(
        broker_id=1,
        replicas=(1,),
        isr=(1,),
        leader_epoch=leader_epoch,
        partition_epoch=0,
        log_end_offset=high_watermark,
        high_watermark=high_watermark,
        min_insync_replicas=1,
        lag_time_max_ms=1000,
        now_ms=0,
        eligible=lambda _broker: True,
    )


def test_waiting_produces_are_settled_by_offset_and_epoch() -> None:
    """A lower offset that came later is not held up; another epoch settles all."""

    async def main() -> None:
        wheel = TimerWheel(asyncio.get_running_loop())
        waiters, answered = Waiters(), []

        def wait(offset: int) -> None:
            produce = DelayedProduce(
                results(1), [0], lambda found: answered.append((offset, found[0].error_code)), wheel, 10_000
            )
            waiters.add_produce(offset, 3, produce, 0)

        for offset in (10, 20, 5):
            wait(offset)
        waiters.settle_produces(leading(10))
        assert answered == [(5, ErrorCode.NONE), (10, ErrorCode.NONE)]
        waiters.settle_produces(leading(100, leader_epoch=4))
        assert answered[2:] == [(20, ErrorCode.NOT_LEADER_OR_FOLLOWER)]

    run(main())


def test_timed_out_produces_are_swept_out() -> None:
    """A watermark that stands still for long must not keep what nobody waits for."""

    async def main() -> None:
        wheel, waiters = TimerWheel(asyncio.get_running_loop()), Waiters()
        for number in range(3000):
            produce = DelayedProduce(results(1), [0], lambda _found: None, wheel, 10)
            waiters.add_produce(number, 3, produce, 0)
            if number % 100 == 0:
                await asyncio.sleep(1)
        assert int(repr(waiters).split()[1]) < 300
        await asyncio.sleep(1)
        assert int(repr(waiters).split()[1]) < 20

    run(main())


def test_an_abandoned_produce_keeps_nothing() -> None:
    """No one wants its answer: it is not answered, and leaves its timer, its results and the queues it waits in."""

    async def main() -> None:
        wheel, waiters, answers = TimerWheel(asyncio.get_running_loop()), Waiters(), []
        live = DelayedProduce(results(1), [0], answers.append, wheel, 1000)
        for number in range(100):
            produce = DelayedProduce(results(3), [0, 2], answers.append, wheel, 1_000_000)
            waiters.add_produce(number, 3, produce, 2)
            if number == 50:
                waiters.add_produce(number, 3, live, 0)
            produce.abandon()
            produce.abandon()
            assert produce.is_done
            assert repr(produce) == "<DelayedProduce waiting for 0 of 0>"
        assert repr(wheel) == "<TimerWheel 1 waiting>"
        assert int(repr(waiters).split()[1]) < 20
        waiters.settle_produces(leading(1000))
        assert repr(waiters) == "<Waiters 0 produces, 0 fetches>"
        assert [found[0].error_code for found in answers] == [ErrorCode.NONE]

    run(main())


class Fetching:
    """A fetch that is enough when told so."""

    def __init__(self, max_wait_ms: int) -> None:
        self.enough = False
        self.attempts: list[set[int] | None] = []
        self.unwatched = 0
        loop = asyncio.get_running_loop()
        self.delayed = DelayedFetch(self._attempt, self._unwatch, loop, TimerWheel(loop), max_wait_ms)

    def _attempt(self, changed: set[int] | None) -> bool:
        self.attempts.append(changed)
        return changed is None or self.enough

    def _unwatch(self, _fetch: DelayedFetch) -> None:
        self.unwatched += 1


def test_a_fetch_looks_once_however_often_it_is_woken() -> None:
    """Many appends, in this turn of the loop and the next, cost one look; after its end it looks no more."""

    async def main() -> None:
        fetching = Fetching(1000)
        for number in range(10):
            fetching.delayed.wake(number % 3)
        await asyncio.sleep(0)
        assert fetching.attempts == []
        fetching.delayed.wake(3)
        await asyncio.sleep(0)
        assert fetching.attempts == [{0, 1, 2, 3}]
        fetching.enough = True
        fetching.delayed.wake(1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        fetching.delayed.wake(2)
        await asyncio.sleep(2)
        assert (fetching.attempts, fetching.unwatched) == ([{0, 1, 2, 3}, {1}], 1)

    run(main())


def test_a_fetch_ends_at_its_time() -> None:
    """A parked fetch is answered when its time is over, with the records that exist."""

    async def main() -> None:
        fetching = Fetching(50)
        await asyncio.sleep(1)
        fetching.delayed.finish_now()
        assert (fetching.attempts, fetching.unwatched, fetching.delayed.is_done) == ([None], 1, True)

    run(main())


def test_a_fetch_whose_client_is_gone_answers_nobody() -> None:
    """Abandoned: no further look, no timer."""

    async def main() -> None:
        fetching = Fetching(50)
        fetching.delayed.wake(0)
        fetching.delayed.abandon()
        await asyncio.sleep(1)
        assert (fetching.attempts, fetching.unwatched) == ([], 1)

    run(main())
