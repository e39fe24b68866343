"""Everything that waits, at once and at random, in virtual time: nothing waits forever, nothing is answered twice."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.purgatory import Delayed, DelayedFetch, DelayedProduce
from cluster.broker.replicas.record_deletion import DelayedDeletion, DeletionResult
from cluster.broker.replicas.timer_wheel import TICK_MS, TimerWheel
from cluster.broker.replicas.waiters import Waiters
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceResult
from cluster.replication.leader import LeaderState
from tests.support.virtual_time import run

PARTITIONS = 4
REQUESTS = 400
LONGEST_MS = 2000


@dataclass
class Place:
    """One partition: its leadership, and who waits."""

    leader: LeaderState
    waiters: Waiters = field(default_factory=Waiters)
    log_start_offset: int = 0


def leading(epoch: int, high_watermark: int) -> LeaderState:
    leader = LeaderState(
        broker_id=1, replicas=(1,), isr=(1,), leader_epoch=epoch, partition_epoch=0, log_end_offset=high_watermark,
        high_watermark=high_watermark, min_insync_replicas=1, lag_time_max_ms=1000, now_ms=0, eligible=lambda _: True,
    )  # fmt: skip
    leader.high_watermark = high_watermark
    return leader


class Stress:
    """Requests with a deadline each, and events that may settle them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loop = asyncio.get_running_loop()
        self.wheel = TimerWheel(self.loop)
        self.places = [Place(leading(0, 0)) for _ in range(PARTITIONS)]
        #: When each request began, how long it may take, and when it was answered.
        self.asked: list[tuple[float, int]] = []
        self.answers: list[list[float]] = []
        self.abandoned: set[int] = set()
        self.leaving: list[tuple[int, DelayedFetch | DelayedProduce | DelayedDeletion]] = []
        self.codes: set[int] = set()

    def begin(self, timeout_ms: int) -> int:
        self.asked.append((self.loop.time(), timeout_ms))
        self.answers.append([])
        return len(self.asked) - 1

    def answered(self, request: int) -> None:
        self.answers[request].append(self.loop.time())

    def produce(self) -> None:
        request = self.begin(timeout_ms := self.random.randrange(LONGEST_MS))
        numbers = self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS))

        def respond(results: list[ProduceResult]) -> None:
            self.codes.update(result.error_code for result in results)
            self.answered(request)

        delayed = DelayedProduce(
            [ProduceResult("t", number, 0) for number in numbers], range(len(numbers)), respond, self.wheel, timeout_ms
        )
        for index, number in enumerate(numbers):
            place = self.places[number]
            offset = place.leader.high_watermark + self.random.randint(1, 5)
            place.waiters.add_produce(offset, place.leader.leader_epoch, delayed, index)
        self.leaving.append((request, delayed))

    def delete(self) -> None:
        request = self.begin(timeout_ms := self.random.randrange(LONGEST_MS))
        number = self.random.randrange(PARTITIONS)
        place = self.places[number]

        def respond(results: list[DeletionResult]) -> None:
            self.codes.update(result.error_code for result in results)
            self.answered(request)

        delayed: Delayed[DeletionResult] = DelayedDeletion(
            [DeletionResult("t", number, 0)], [0], respond, self.wheel, timeout_ms
        )
        assert isinstance(delayed, DelayedDeletion)
        place.waiters.add_deletion(place.log_start_offset + self.random.randint(1, 3), delayed, 0)
        self.leaving.append((request, delayed))

    def fetch(self) -> None:
        request = self.begin(timeout_ms := self.random.randrange(LONGEST_MS))
        reader = FetchedBy() if self.random.random() < 0.5 else FetchedBy(2)
        numbers = self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS))

        def attempt(changed: set[int] | None) -> bool:
            if changed is not None and self.random.random() < 0.7:
                return False
            self.answered(request)
            return True

        def unwatch(fetch: DelayedFetch) -> None:
            for number in numbers:
                self.places[number].waiters.remove_fetch(fetch, reader)

        delayed = DelayedFetch(attempt, unwatch, self.loop, self.wheel, timeout_ms)
        for index, number in enumerate(numbers):
            self.places[number].waiters.add_fetch(delayed, index, reader)
        self.leaving.append((request, delayed))

    def event(self) -> None:
        place = self.random.choice(self.places)
        leader = place.leader
        match self.random.randrange(8):
            case 0 | 1 | 2:
                leader.high_watermark += self.random.randint(0, 3)
                place.waiters.settle_produces(leader)
                place.waiters.wake_consumers()
            case 3:
                place.waiters.wake_followers()
            case 4:
                place.log_start_offset += 1
                place.waiters.settle_deletions(leader, place.log_start_offset)
            case 5 if self.random.random() < 0.1:
                place.waiters.settle_deletions(None, place.log_start_offset)
                place.leader = leading(leader.leader_epoch + 1, leader.high_watermark)
                place.waiters.settle_produces(place.leader)
                place.waiters.wake_all()
            case 6 if self.leaving:
                request, delayed = self.random.choice(self.leaving)
                if not delayed.is_done:
                    self.abandoned.add(request)
                    delayed.abandon()
            case 7 if self.leaving:
                self.random.choice(self.leaving)[1].finish_now()

    async def play(self) -> None:
        for _ in range(REQUESTS):
            self.random.choice((self.produce, self.produce, self.fetch, self.fetch, self.delete))()
            for _ in range(self.random.randrange(4)):
                self.event()
            await asyncio.sleep(self.random.choice((0, 0.001, 0.05)))
        await asyncio.sleep(2 * LONGEST_MS / 1000)


@pytest.mark.parametrize("seed", range(5))
def test_everything_is_answered_once_and_in_time(seed: int) -> None:
    """Produces, fetches and deletions, settled, woken, abandoned and expired in any order."""

    async def main() -> None:
        stress = Stress(seed)
        await stress.play()
        for request, ((asked_s, timeout_ms), answers) in enumerate(zip(stress.asked, stress.answers, strict=True)):
            assert len(answers) == (request not in stress.abandoned), request
            for at_s in answers:
                assert at_s - asked_s <= (timeout_ms + TICK_MS + 1) / 1000
        assert repr(stress.wheel) == "<TimerWheel 0 waiting>"
        assert stress.codes == {
            ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER
        }  # fmt: skip
        for place in stress.places:
            place.waiters.settle_produces(None)
            place.waiters.settle_deletions(None, 0)
            assert repr(place.waiters) == "<Waiters 0 produces, 0 fetches>"

    run(main())
