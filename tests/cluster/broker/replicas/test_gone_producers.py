"""Heavy produces that wait for others: those of clients that have gone meanwhile are not carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.broker.handlers import produce
from cluster.broker.pauses import SHARE_NS, Shares
from cluster.broker.replicas.host import ProducerGone, WrittenBy
from cluster.broker.replicas.writes import Writes
from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProducePartition, ProduceRequest, ProduceResult
from cluster.protocol.record_checks import Postponed
from cluster.seams.clock import ManualClock
from tests.cluster.broker.test_request_memory import Gate
from tests.simulation.client import batch


class Partition:
    """A replica that has batches examined off the loop, but for those without compression."""

    def __init__(self, topic: str, number: int) -> None:
        self.topic, self.partition = topic, number
        self.log = self.leader = None
        self.log = SimpleNamespace(config=None)
        self.appended = 0

    def append(
        self,
        _records: Any,
        header: Any,
        _acks: int,
        _now_ms: int,
        _wall_ms: int,
        _effort: Any,
        _host: str,
        *looked: Any,
    ) -> Any:
        if header.attributes and not looked:
            raise Postponed
        self.appended += 1
        return AppendInfo(0, 0, -1, 0, 0, 0, ErrorCode.NONE), 0


class Bench:
    """``answers`` are results by request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cluster.broker.replicas.internal_checks.look_inside", lambda *_: None)
        self.partitions = {("t", number): Partition("t", number) for number in range(4)}
        self.gate, self.now_ns, self.answers = Gate(), 0, list[list[ProduceResult]]()
        partitions: Any = self.partitions
        wheel: Any = None
        self.shares = Shares(lambda: self.now_ns)
        self.writes = Writes(
            partitions, lambda topic, number: partitions[topic, number], lambda *_: True,
            replace(Rules(), acknowledgement=lambda *_: ErrorCode.NONE),
            wheel, ManualClock(), lambda _: None, self.gate, self.shares, True,
        )  # fmt: skip

    def produce(self, *numbers: int, plain: int | None = None, is_gone: bool = False) -> Awaitable[None]:
        """A request for these partitions, and one without compression for ``plain`` before them: what is left of it."""
        parts = [
            ProducePartition("t", number, memoryview(bytearray(batch(b"v", codec=CODEC_ZSTD)))) for number in numbers
        ]
        if plain is not None:
            parts.insert(0, ProducePartition("t", plain, memoryview(bytearray(batch(b"v")))))
        asked = ProduceRequest(None, 1, 1000, parts)
        waits: Any = None
        rest = self.writes.produce(
            asked, WrittenBy("c", "10.0.0.9"), True, 0, self.answers.append, waits, is_gone=lambda: is_gone
        )
        assert rest is not None
        return rest

    def appended(self) -> list[int]:
        return [each.appended for each in self.partitions.values()]


def test_a_produce_whose_client_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has waited for another one: nothing of it is stored, and its connection ends. One of which something is
    stored is carried out, and so is one that did not wait."""

    async def main() -> None:
        bench = Bench(monkeypatch)
        first = asyncio.ensure_future(bench.produce(0, is_gone=True))
        await bench.gate.begun.wait()
        asked = bench.produce(1, is_gone=True), bench.produce(2, plain=3, is_gone=True)
        gone, begun = map(asyncio.ensure_future, asked)
        await asyncio.sleep(0)
        bench.gate.open.set()
        await first
        with pytest.raises(ProducerGone):
            await gone
        await begun
        assert bench.appended() == [1, 0, 1, 1]
        assert len(bench.answers) == 2

    asyncio.run(main())


def test_a_produce_that_waited_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have used up this one; its client leaves before the next."""

    async def main() -> None:
        bench = Bench(monkeypatch)
        assert not bench.shares.is_over()
        bench.now_ns += SHARE_NS
        with pytest.raises(ProducerGone):
            await bench.produce(1, is_gone=True)
        assert bench.appended() == [0, 0, 0, 0]

    asyncio.run(main())


@pytest.mark.parametrize(("acks", "expected"), [(-1, True), (1, True), (0, False)])
def test_who_wants_no_acknowledgement_may_leave(acks: int, expected: bool) -> None:
    """What it sent is stored all the same."""
    exchange: Any = SimpleNamespace(connection=SimpleNamespace(is_gone=lambda: True))
    assert produce._is_gone(exchange, acks)() is expected
