"""OrderedAppends by itself: results in the order of each log, one at a time, and a last word before a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from cluster.broker.pauses import SHARE_NS, Shares
from cluster.broker.replicas.ordered_appends import OrderedAppends, OwnAppend
from cluster.broker.replicas.own_writes import OwnWrites, WriteTold
from cluster.protocol.errors import ErrorCode
from tests.support.virtual_time import LoopClock, run


class Scene:
    """``writes`` are the batches that have no result yet; ``told`` is what was heard of each, in order."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.writes: dict[bytes, tuple[int, bool, WriteTold]] = {}
        self.told: list[tuple[bytes, ErrorCode, int]] = []
        own_writes = cast(OwnWrites, self)
        self.appends = OrderedAppends(own_writes, LoopClock(), 1000, Shares(lambda: self.now_ns))

    def append(
        self,
        _topic: str,
        number: int,
        _epoch: int,
        batch: bytes,
        _timeout_ms: int,
        told: WriteTold,
        *,
        in_that_epoch: bool,
    ) -> None:
        self.writes[batch] = (number, in_that_epoch, told)

    def add(self, *names: bytes, partition: int = 0, **fields: Any) -> None:
        def asked(name: bytes) -> OwnAppend:
            def told(error_code: ErrorCode, position: int) -> None:
                self.told.append((name, error_code, position))

            return OwnAppend("t", partition, 3, lambda _wall_ms: name, told, **fields)

        self.appends.add(map(asked, names))

    def settle(self, name: bytes, error_code: ErrorCode = ErrorCode.NONE, position: int = 0) -> None:
        self.writes.pop(name)[2](error_code, position)


def scene(check: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        await check(Scene())

    run(main())


def test_results_are_told_in_the_order_of_the_log() -> None:
    """Of each partition; others do not wait for it."""

    async def check(scene: Scene) -> None:
        for name, partition in ((b"a", 0), (b"b", 0), (b"c", 1)):
            scene.add(name, partition=partition)
        scene.settle(b"b", position=1)
        scene.settle(b"c", position=7)
        assert scene.told == [(b"c", ErrorCode.NONE, 7)]
        scene.settle(b"a", ErrorCode.REQUEST_TIMED_OUT, -1)
        assert scene.told[1:] == [(b"a", ErrorCode.REQUEST_TIMED_OUT, -1), (b"b", ErrorCode.NONE, 1)]

    scene(check)


def test_the_last_word_before_a_batch_is_written() -> None:
    """What may not be written anymore is told so in its turn; the epoch is handed on."""

    async def check(scene: Scene) -> None:
        scene.add(b"a", in_that_epoch=True)
        scene.add(b"b", may_write=lambda: False)
        scene.add(b"c", may_write=lambda: True)
        assert {name: write[1] for name, write in scene.writes.items()} == {b"a": True, b"c": False}
        assert scene.told == []
        scene.settle(b"a")
        assert scene.told == [(b"a", ErrorCode.NONE, 0), (b"b", ErrorCode.INVALID_TXN_STATE, -1)]

    scene(check)


def test_very_many_share_the_turns_of_the_loop() -> None:
    """Each takes a whole share: two are written in a turn, of which the first was not known to be so slow."""

    async def check(scene: Scene) -> None:
        def slow() -> bool:
            scene.now_ns += SHARE_NS
            return True

        scene.add(*(b"%d" % number for number in range(5)), may_write=slow)
        written = []
        while len(scene.writes) < 5:
            written.append(len(scene.writes))
            await asyncio.sleep(0)
        assert written == [2, 4]

    scene(check)
