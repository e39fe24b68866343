"""MemorySelector and LoopRunner: a client that polls, beside brokers that hear, in one loop; and ThreadRunner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from cluster.seams.memory_selector import LoopRunner, MemorySelector
from cluster.seams.memory_transport import MemoryListener, MemoryNetwork
from cluster.seams.runner import ThreadRunner
from cluster.seams.transport import Connection
from tests.cluster.seams.recording import Acceptor, echo
from tests.cluster.seams.recording import Recorder as Frames
from tests.cluster.seams.test_socket_selector import NODE, Recorder
from tests.support.virtual_time import run


class Accepting(Acceptor):
    """``then`` is called for each connection that is accepted."""

    then: Callable[[], None] = staticmethod(lambda: None)

    def __call__(self, connection: Connection) -> Frames:
        recorder = super().__call__(connection)
        self.then()
        return recorder


class Setting:
    """A selector on node a, and an acceptor that listens on node b."""

    def __init__(self, on_frame=None, room_bytes: int = 1 << 20) -> None:
        self.network = MemoryNetwork(lambda source, destination, size_bytes: 1.0)
        self.server = Accepting(on_frame)
        self.transport = self.network.transport("a")
        self.selector = MemorySelector(self.transport, room_bytes=room_bytes)
        self.told = Recorder()
        self.listener: MemoryListener | None = None

    async def connect(self) -> None:
        self.listener = await self.network.transport("b").listen("b", 9092, self.server)
        self.selector.connect(NODE, "b", 9092, 0)
        assert await self.tells() == [("connected", NODE)]

    async def tells(self) -> list[tuple]:
        """What a poll tells after a while."""
        await asyncio.sleep(0.01)
        self.told.events.clear()
        self.selector.poll(0, self.told)
        return list(self.told.events)


def with_setting(body: Callable[[Setting], Awaitable[None]], **options) -> None:
    async def main() -> None:
        await body(Setting(**options))

    run(main())


def test_frames_both_ways_are_told_by_poll_alone() -> None:
    """What arrives waits for the next poll, and is the handler's own: a later frame does not change it."""

    async def body(setting: Setting) -> None:
        await setting.connect()
        views: list[memoryview] = []
        setting.told.on_frame = lambda node_id, frame: views.append(frame)
        assert setting.selector.send(NODE, [b"ab", memoryview(b"c")])
        assert setting.selector.send(NODE, [b"d"])
        await asyncio.sleep(0.01)
        assert (setting.server.handlers[0].frames, views) == ([b"abc", b"d"], [])
        await setting.tells()
        assert views == [b"abc", b"d"]

    with_setting(body, on_frame=echo)


def test_a_connection_that_is_refused_is_told_as_closed() -> None:
    """And its node has no connection then."""

    async def body(setting: Setting) -> None:
        setting.selector.connect(NODE, "b", 9092, 0)
        assert await setting.tells() == [("closed", NODE, "nothing listens on b:9092")]
        with pytest.raises(KeyError):
            setting.selector.send(NODE, [b"x"])

    with_setting(body)


def test_the_broker_closes_behind_its_last_answer() -> None:
    """What came before the end is told before it; then the node is free for another connection."""

    async def body(setting: Setting) -> None:
        await setting.connect()
        setting.server.handlers[0].connection.send_frame((b"last",))
        setting.server.handlers[0].connection.close()
        assert await setting.tells() == [("frame", NODE, b"last"), ("closed", NODE, "closed by the peer")]
        setting.selector.connect(NODE, "b", 9092, 0)
        assert await setting.tells() == [("connected", NODE)]

    with_setting(body)


def test_what_is_closed_here_is_told_nothing_more() -> None:
    """Neither its end nor what had arrived; the broker hears of the end."""

    async def body(setting: Setting) -> None:
        await setting.connect()
        setting.server.handlers[0].connection.send_frame((b"late",))
        await asyncio.sleep(0.01)
        setting.selector.close(NODE)
        assert await setting.tells() == []
        assert setting.server.handlers[0].closed == ["aborted by the peer"]

    with_setting(body)


def test_an_attempt_that_was_given_up_leaves_no_connection_behind() -> None:
    """However far it had come: held by a cut, it never arrives; accepted already, it ends for the broker too."""

    async def body(setting: Setting) -> None:
        setting.listener = await setting.network.transport("b").listen("b", 9092, setting.server)
        setting.network.cut("a", "b")
        setting.selector.connect(NODE, "b", 9092, 0)
        assert await setting.tells() == []
        setting.selector.close(NODE)
        setting.network.heal("a", "b")
        assert await setting.tells() == []
        assert setting.server.handlers == []
        # The broker has its turn between the arrival of the attempt and that of its answer.
        setting.server.then = lambda: setting.selector.close(NODE)
        setting.selector.connect(NODE, "b", 9092, 0)
        assert await setting.tells() == []
        assert [handler.closed for handler in setting.server.handlers] == [["aborted by the peer"]]

    with_setting(body)


def test_a_full_connection_keeps_a_frame_until_there_is_room() -> None:
    """It is sending until that is told; the frames keep their order."""

    async def body(setting: Setting) -> None:
        await setting.connect()
        setting.network.cut("a", "b")
        assert setting.selector.send(NODE, [b"12345"])
        assert not setting.selector.send(NODE, [b"6"])
        assert setting.selector.is_sending(NODE)
        assert await setting.tells() == []
        setting.network.heal("a", "b")
        assert await setting.tells() == [("flushed", NODE)]
        assert not setting.selector.is_sending(NODE)
        await asyncio.sleep(0.01)
        assert setting.server.handlers[0].frames == [b"12345", b"6"]

    with_setting(body, room_bytes=3)


def steps_of(setting: Setting, waits: list[float | None]) -> tuple[LoopRunner, list[float]]:
    """A runner whose steps wait for so long, one after the other; and when each came."""
    runner, times = LoopRunner(setting.selector), []

    def step() -> bool:
        times.append(round(asyncio.get_running_loop().time(), 3))
        if not waits:
            return False
        setting.selector.poll(waits.pop(0), setting.told)
        return True

    runner.start(step)
    return runner, times


def test_a_step_comes_when_it_was_to_wait_no_longer_or_something_happened() -> None:
    """A deadline, an event (with a step at once after the poll that told it), a wake-up; none without."""

    async def body(setting: Setting) -> None:
        await setting.connect()
        begin = asyncio.get_running_loop().time()
        runner, times = steps_of(setting, [500, None, None, None, None])
        await asyncio.sleep(1)
        assert [time - round(begin, 3) for time in times] == [0, pytest.approx(0.5)]
        setting.server.handlers[0].connection.send_frame((b"x",))
        await asyncio.sleep(1)
        assert setting.told.events[-1] == ("frame", NODE, b"x")
        assert len(times) == 4
        setting.selector.wakeup()
        setting.selector.wakeup()
        await asyncio.sleep(1)
        # The step whose poll takes note of the wake-up, and the last.
        assert (len(times), runner.has_ended, runner.is_current) == (6, True, True)

    with_setting(body)


def test_a_killed_client_does_nothing_any_more() -> None:
    """Whatever happens and whatever it waits for."""

    async def body(setting: Setting) -> None:
        await setting.connect()
        runner, times = steps_of(setting, [100, 100])
        await asyncio.sleep(0.05)
        runner.kill()
        setting.selector.wakeup()
        await asyncio.sleep(1)
        assert (len(times), runner.has_ended, runner.join(None)) == (1, True, True)

    with_setting(body)


def test_a_thread_carries_on_until_the_last_step() -> None:
    """Its steps know that they are the thread's own; afterwards it has ended."""
    current: list[bool] = []
    may_end = threading.Event()
    runner = ThreadRunner("carries on")

    def step() -> bool:
        may_end.wait(20)
        current.append(runner.is_current)
        return len(current) < 3

    assert not runner.has_ended
    runner.start(step)
    assert (runner.join(0), runner.has_ended, runner.is_current) == (False, False, False)
    may_end.set()
    assert (runner.join(20), runner.has_ended, current) == (True, True, [True] * 3)
