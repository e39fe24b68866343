"""FrameTurns: what is ready together is divided among turns of the loop, connection by connection."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from cluster.seams import frame_turns
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.frame_turns import FrameTurns
from cluster.seams.turn_selector import TurnSelector
from tests.cluster.seams.recording import Acceptor, Recorder
from tests.cluster.seams.sockets import HOST, frame

CONNECTIONS = 5
FRAMES = 20


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "asked"])
def test_a_turn_without_time_takes_one_request_of_all_connections(
    monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    """They are taken in turns, none is lost, and each connection's are in order, also of one that pauses in the
    middle."""
    monkeypatch.setattr(frame_turns, "TURN_S", -1.0)
    selector = TurnSelector()
    taken: list[tuple[int, str]] = []
    all_taken = asyncio.Event()

    def note(recorder: Recorder, view: memoryview) -> None:
        taken.append((selector.number, bytes(view).decode()))
        if len(taken) == CONNECTIONS * FRAMES:
            all_taken.set()
        if view[-1:] == b"7":
            recorder.connection.pause_reading()
            recorder.connection.resume_reading()

    async def main() -> None:
        acceptor = Acceptor(note)
        listener = await AsyncioTransport(selector if counted else None).listen(HOST, 0, acceptor)
        writers = [(await asyncio.open_connection(HOST, listener.port))[1] for _ in range(CONNECTIONS)]
        for name, writer in enumerate(writers):
            writer.write(b"".join(frame(f"{name} {number}".encode()) for number in range(FRAMES)))
        async with asyncio.timeout(30):
            await all_taken.wait()
        for writer in writers:
            writer.close()
        await listener.close()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())
    assert max(Counter(turn for turn, _ in taken).values()) == 1
    frames = [text.split() for _, text in taken]
    for name in range(CONNECTIONS):
        assert [number for each, number in frames if each == str(name)] == [str(n) for n in range(FRAMES)]
    # Between two of the same connection the others that rest have theirs.
    middle = [each for each, _ in frames[len(frames) // 3 : 2 * len(frames) // 3]]
    assert max(Counter(middle).values()) - min(Counter(middle).values()) <= 2


def test_who_has_much_to_ask_takes_one_request_while_others_rest() -> None:
    """With time left. Once no one rests anymore, it takes all of them."""
    selector = TurnSelector()
    turns_of_frames: list[int] = []
    all_taken = asyncio.Event()

    async def main() -> None:
        def note(_: Recorder, view: memoryview) -> None:
            if not turns_of_frames:
                listener._turns.rest(lambda: None)
            turns_of_frames.append(selector.number)
            if len(turns_of_frames) == FRAMES:
                all_taken.set()

        listener = await AsyncioTransport(selector).listen(HOST, 0, Acceptor(note))
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(b"".join(frame(b"%d" % number) for number in range(FRAMES)))
        async with asyncio.timeout(30):
            await all_taken.wait()
        writer.close()
        await listener.close()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())
    first, *rest = turns_of_frames
    assert first < rest[0] and len(set(rest)) == 1


def test_a_connection_that_reads_again_begins_no_time() -> None:
    """There is no request yet. A hundred that had theirs answered let others wait half a second."""

    async def main() -> None:
        acceptor = Acceptor()
        listener = await AsyncioTransport().listen(HOST, 0, acceptor)
        _, writer = await asyncio.open_connection(HOST, listener.port)
        recorder = await acceptor.first()
        recorder.connection.pause_reading()
        recorder.connection.resume_reading()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert listener._turns._until_s == 0.0
        writer.close()
        await listener.close()

    asyncio.run(main())


def test_the_time_of_a_turn_begins_with_its_first_request() -> None:
    """Whatever was done before in it, and whatever another listener took."""

    class Turning:
        number = 1

    turning = Turning()

    async def main() -> None:
        first, second = (FrameTurns(asyncio.get_running_loop(), turning) for _ in range(2))
        assert not first.is_over()
        first._until_s = 0.0
        assert first.is_over() and not second.is_over()
        turning.number += 1
        assert not first.is_over()

    asyncio.run(main())
