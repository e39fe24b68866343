"""MarkerSender by itself: which marker goes to which broker, when it is tried again, and what is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.transactions.marker_links import MarkerLinks
from cluster.broker.transactions.marker_sending import LOOK_S, MOST_PARTITIONS, RETRY_S, MarkerSender
from cluster.broker.transactions.marker_writing import MarkerErrors, MarkerWriter
from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.metadata.store import ConnectionLostError
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition
from tests.support.virtual_time import run

OWN, PEER = 1, 2
HERE, THERE, AWAY, UNKNOWN = (("t", number) for number in range(4))


def markers(*partitions: TopicPartition, of: int = 0, producer_id: int = 7) -> TransactionMarkers:
    return TransactionMarkers(of, 3, f"id-{producer_id}", producer_id, 0, True, frozenset(partitions))


@dataclass
class Found:
    leader: int


@dataclass
class FakeMetadata:
    """Who leads what; an update is told to who listens."""

    leaders: dict[TopicPartition, int] = field(default_factory=lambda: {HERE: OWN, THERE: PEER, AWAY: -1})
    alive: set[int] = field(default_factory=lambda: {OWN, PEER})
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def partition(self, topic: str, number: int) -> Any:
        leader = self.leaders.get((topic, number))
        return None if leader is None else Found(leader)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.alive

    def on_update(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def update(self, **leaders: int) -> None:
        self.leaders |= {("t", int(name[1:])): leader for name, leader in leaders.items()}
        for listener in self.listeners:
            listener()


class Scene:
    """A sender whose brokers answer NONE, or what ``answers`` says next; all that they were asked is in ``asked``."""

    def __init__(self) -> None:
        self.metadata = FakeMetadata()
        self.asked: list[tuple[int, list[TransactionMarkers]]] = []
        self.answers: list[Exception | ErrorCode] = []
        self.told: list[tuple[TransactionMarkers, Mapping[TopicPartition, ErrorCode] | None]] = []
        self.gone: list[TransactionMarkers] = []
        self.stored: dict[str, int] = {"t": 3}
        self.store_error: Exception | None = None
        self.delay_s = 0.0
        self.is_closed = False
        self.sender = MarkerSender(
            OWN,
            cast(MetadataCache, self.metadata),
            cast(MarkerLinks, self),
            cast(MarkerWriter, FakeWriter(self)),
            self._stored_partitions,
            lambda markers, errors: self.hear(markers, errors),
            self.gone.append,
        )

    def hear(self, markers: TransactionMarkers, errors: Mapping[TopicPartition, ErrorCode] | None) -> None:
        self.told.append((markers, errors))

    def close(self) -> None:
        self.is_closed = True

    async def write(self, broker_id: int, asked: Sequence[TransactionMarkers]) -> list[MarkerErrors]:
        self.asked.append((broker_id, [*asked]))
        await asyncio.sleep(self.delay_s)
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, Exception):
            raise answer
        return [dict.fromkeys(each.topic_partitions, answer) for each in asked]

    async def _stored_partitions(self, topic: str) -> int | None:
        if self.store_error is not None:
            raise self.store_error
        return self.stored.get(topic)


class FakeWriter:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def write(self, asked: Sequence[TransactionMarkers]) -> list[MarkerErrors]:
        return await self._scene.write(OWN, asked)


def scene(check: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        made = Scene()
        await check(made)
        await made.sender.close()
        assert made.is_closed

    run(main())


def test_each_broker_gets_its_own() -> None:
    """This broker without a connection; what comes up in one turn goes into one request."""

    async def check(scene: Scene) -> None:
        for producer_id in (7, 8):
            scene.sender.add(markers(HERE, THERE, producer_id=producer_id))
        await asyncio.sleep(0.01)
        both = [markers(HERE), markers(HERE, producer_id=8)], [markers(THERE), markers(THERE, producer_id=8)]
        assert sorted(scene.asked, key=lambda each: each[0]) == [(OWN, both[0]), (PEER, both[1])]
        assert len(scene.told) == 4
        assert {code for _, errors in scene.told for code in (errors or {}).values()} == {ErrorCode.NONE}

    scene(check)


def test_one_request_at_a_time() -> None:
    """What comes up meanwhile goes into the next one, at most so many partitions of it."""

    async def check(scene: Scene) -> None:
        scene.delay_s = 1.0
        scene.metadata.leaders |= {("many", number): PEER for number in range(2 * MOST_PARTITIONS)}
        scene.sender.add(markers(THERE))
        await asyncio.sleep(0.5)
        for producer_id in range(2 * MOST_PARTITIONS):
            scene.sender.add(markers(("many", producer_id), producer_id=producer_id))
        await asyncio.sleep(0.4)
        assert len(scene.asked) == 1
        await asyncio.sleep(10)
        assert [len(asked) for _, asked in scene.asked] == [1, MOST_PARTITIONS, MOST_PARTITIONS]

    scene(check)


def test_what_waits_is_counted() -> None:
    """For its turn at a broker, for a leader, for another try; not what is on its way, nor what was written."""

    async def check(scene: Scene) -> None:
        nothing = {"broker": 0, "unknown destination": 0, "retry": 0}
        scene.delay_s = 1.0
        scene.sender.add(markers(THERE, AWAY))
        scene.sender.add(markers(HERE, producer_id=8), is_retry=True)
        assert scene.sender.queue_sizes() == {**nothing, "retry": 1}
        await asyncio.sleep(RETRY_S + 0.1)
        assert scene.sender.queue_sizes() == {**nothing, "unknown destination": 1}
        scene.sender.add(markers(THERE, producer_id=9))
        await asyncio.sleep(0.1)
        assert scene.sender.queue_sizes() == {**nothing, "broker": 1, "unknown destination": 1}
        scene.metadata.update(t2=PEER)
        await asyncio.sleep(5)
        assert scene.sender.queue_sizes() == nothing

    scene(check)


def test_a_small_transaction_does_not_wait_for_large_ones() -> None:
    """What comes up behind transactions of very many partitions is in the next request."""

    async def check(scene: Scene) -> None:
        scene.delay_s = 1.0
        scene.metadata.leaders |= {("many", number): PEER for number in range(3000)}
        for producer_id in range(10):
            scene.sender.add(markers(*(("many", number) for number in range(3000)), producer_id=producer_id))
        await asyncio.sleep(0.5)
        scene.sender.add(markers(THERE, producer_id=99))
        await asyncio.sleep(2)
        assert markers(THERE, producer_id=99) in [each for each, _ in scene.told]

    scene(check)


@pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError(), ConnectionLostError("zk"), ValueError("?")])
def test_a_broker_that_is_out_of_reach(error: Exception) -> None:
    """None is told, whatever the reason; tried again it goes to the leader of then, after a pause."""

    async def check(scene: Scene) -> None:
        scene.answers = [error]
        scene.sender.add(markers(THERE))
        await asyncio.sleep(0.01)
        assert scene.told == [(markers(THERE), None)]
        scene.sender.add(markers(THERE), is_retry=True)
        scene.metadata.update(t1=OWN)
        await asyncio.sleep(RETRY_S / 2)
        assert len(scene.asked) == 1
        await asyncio.sleep(RETRY_S)
        assert [broker_id for broker_id, _ in scene.asked] == [PEER, OWN]

    scene(check)


def test_a_leader_that_is_away_is_waited_for() -> None:
    """Also one that is named and not alive; both when the metadata change and by looking again."""

    async def check(scene: Scene) -> None:
        scene.metadata.alive.discard(PEER)
        scene.sender.add(markers(AWAY, THERE))
        await asyncio.sleep(10 * LOOK_S)
        assert (scene.asked, scene.gone) == ([], [])
        scene.metadata.update(t2=OWN)
        await asyncio.sleep(0.01)
        assert scene.asked == [(OWN, [markers(AWAY)])]
        scene.metadata.alive.add(PEER)
        await asyncio.sleep(2 * LOOK_S)
        assert scene.asked[1:] == [(PEER, [markers(THERE)])]

    scene(check)


def test_a_partition_that_is_nowhere_is_gone() -> None:
    """If ZooKeeper does not have it either, and only then: the metadata may come later."""

    async def check(scene: Scene) -> None:
        scene.stored["t"] = 4
        scene.store_error = ConnectionLostError("away")
        scene.sender.add(markers(UNKNOWN, HERE))
        await asyncio.sleep(3 * LOOK_S)
        scene.store_error = None
        await asyncio.sleep(3 * LOOK_S)
        assert scene.gone == []
        del scene.stored["t"]
        await asyncio.sleep(3 * LOOK_S)
        assert scene.gone == [markers(UNKNOWN)]
        assert scene.asked == [(OWN, [markers(HERE)])]
        scene.stored["t"] = 3
        scene.sender.add(markers(UNKNOWN))
        await asyncio.sleep(3 * LOOK_S)
        assert len(scene.gone) == 2

    scene(check)


def test_markers_of_a_partition_that_is_left_are_forgotten() -> None:
    """Wherever they wait: to be sent, for a leader, for a broker, to be tried again."""

    async def check(scene: Scene) -> None:
        scene.delay_s = 1.0
        scene.sender.add(markers(THERE, of=1))
        await asyncio.sleep(0.5)
        for number in (0, 1):
            scene.sender.add(markers(THERE, of=number))
            scene.sender.add(markers(AWAY, of=number))
        await asyncio.sleep(0.01)
        for number in (0, 1):
            scene.sender.add(markers(HERE, of=number))
            scene.sender.add(markers(HERE, of=number), is_retry=True)
        scene.sender.drop(0)
        scene.metadata.update(t2=OWN)
        await asyncio.sleep(10)
        sent = [each for _, asked in scene.asked for each in asked]
        assert {each.transaction_partition for each in sent} == {1}
        assert sum(len(each.topic_partitions) for each in sent) == 5

    scene(check)


def test_a_surprise_keeps_nothing_back(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that hear of one answer; the log has it."""

    async def check(scene: Scene) -> None:
        told: list[TransactionMarkers] = []

        def surprised(found: TransactionMarkers, _errors: Mapping[TopicPartition, ErrorCode] | None) -> None:
            told.append(found)
            raise ValueError("unforeseen")

        monkeypatch.setattr(scene, "hear", surprised)
        scene.sender.add(markers(HERE))
        scene.sender.add(markers(HERE, producer_id=8))
        await asyncio.sleep(0.01)
        assert len(told) == 2

    scene(check)
    assert "unforeseen" in caplog.text


def test_nothing_is_sent_after_the_end() -> None:
    """Also what was asked for before."""

    async def check(scene: Scene) -> None:
        scene.sender.add(markers(HERE))
        scene.sender.add(markers(AWAY), is_retry=True)
        await scene.sender.close()
        scene.sender.add(markers(HERE))
        scene.metadata.update(t2=OWN)
        await asyncio.sleep(10)
        assert scene.asked == []

    scene(check)
