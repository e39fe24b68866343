"""Frames of Kafka's: found wherever a stream is cut, and each toxic acts on just those that it is to act on."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.proxy.frames import MAX_REMEMBERED, Dialogue, FrameHeader, FrameWalk, read_header
from chaos.proxy.pipe import CHUNK_BYTES, PipeDirection
from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics import TOXIC_TYPES
from chaos.proxy.toxics.frame_types import SURPLUS
from chaos.proxy.toxics.frames import MAX_REPEATED_BYTES, HoldFrameStage
from tests.chaos.proxy.rig import Rig
from tests.chaos.proxy.virtual_loop import run_virtual

PRODUCE, JOIN_GROUP, END_TXN = 0, 11, 26
APIS = 1 << END_TXN | 1 << JOIN_GROUP


def request(api_key: int, correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ihhi", 8 + len(body), api_key, 3, correlation_id) + body


def answer(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


frames = st.lists(st.tuples(st.sampled_from([PRODUCE, JOIN_GROUP, END_TXN]), st.binary(max_size=40)), max_size=8).map(
    lambda drawn: [request(api_key, number, body) for number, (api_key, body) in enumerate(drawn)]
)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The same bytes, cut at these places."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


cuts = st.lists(st.integers(0, 400), max_size=30)


def play(scenario: Callable[[Rig], Awaitable[None]]) -> None:
    """Run it with a link of its own, on virtual time."""

    async def run() -> None:
        await scenario(Rig())

    run_virtual(run())


def send(rig: Rig, data: bytes, at: Sequence[int] = ()) -> None:
    """Requests arrive, in pieces; what must hold at any moment is looked at after each."""
    for piece in pieces(data, at):
        rig.sent += piece
        rig.client.data_received(piece)
        rig.check()


# --- the walk


@given(frames, cuts)
def test_a_walk_finds_each_frame_wherever_it_is_cut(sent: list[bytes], at: list[int]) -> None:
    """Every header is seen once, whole, and the walk ends between two frames."""
    seen: list[FrameHeader] = []

    class Listening(Dialogue):
        def request_passed(self, header: FrameHeader) -> None:
            seen.append(header)

    walk = FrameWalk(PipeDirection.UPSTREAM, Listening(is_followed=True))
    for piece in pieces(b"".join(sent), at):
        walk.advance(piece)
    assert seen == [read_header(frame[:12]) for frame in sent]
    assert (walk.framed, walk.left, bytes(walk.head)) == (True, 0, b"")


@pytest.mark.parametrize(
    "garbage", [bytes(20), b"\xff" * 20, b"GET / HTTP/1.1\r\n\r\n", struct.pack(">i", 7) + bytes(9)]
)
def test_another_protocol_is_left_alone(garbage: bytes) -> None:
    """A length that no frame of Kafka's has: from there on nothing is looked for, and everything passes."""
    walk = FrameWalk(PipeDirection.UPSTREAM, Dialogue())
    walk.advance(garbage)
    assert not walk.framed

    async def scenario(rig: Rig) -> None:
        toxic = rig.add("drop_frame", api_keys=APIS)
        send(rig, garbage + request(END_TXN, 1))
        assert rig.sink.written == rig.sent
        assert toxic.tally.matched == 0

    play(scenario)


def test_what_is_remembered_of_requests_is_bounded() -> None:
    """Requests that get no answer (acks=0) take the place of older ones."""
    dialogue = Dialogue(is_followed=True)
    for number in range(MAX_REMEMBERED + 5):
        dialogue.request_passed(FrameHeader(20, END_TXN, number))
        dialogue.repeat(FrameHeader(20, END_TXN, number))
    assert dialogue.api_key_of(FrameHeader(20, None, 4)) is None
    assert dialogue.api_key_of(FrameHeader(20, None, 5)) == END_TXN
    assert not any(dialogue.is_surplus(FrameHeader(20, None, 4)) for _ in range(2))


# --- what becomes of frames


def api_key_of(frame: bytes) -> int:
    return int.from_bytes(frame[4:6], "big")


@given(frames, cuts, st.integers(0, 60), st.sampled_from(["drop_frame", "repeat_frame"]), st.integers(0, 2))
def test_a_toxic_acts_on_whole_frames_wherever_they_are_cut(
    sent: list[bytes], at: list[int], before: int, kind: str, skip: int
) -> None:
    """The frame that is under way when it comes passes; of the others, just those that match are hit."""

    async def scenario(rig: Rig) -> None:
        data = b"".join(sent)
        send(rig, data[:before])
        toxic = rig.add(kind, api_keys=APIS, skip=skip)
        rig.sent.clear()
        rig.sent += data[:before]
        for piece in pieces(data[before:], at):
            rig.client.data_received(piece)
        await asyncio.sleep(1)
        expected, place, matched = b"", 0, 0
        for frame in sent:
            judged = place >= before and api_key_of(frame) != PRODUCE
            matched += judged
            place += len(frame)
            expected += frame * ({"drop_frame": 0, "repeat_frame": 2}[kind] if judged and matched > skip else 1)
        assert rig.sink.written == expected
        assert (toxic.tally.matched, toxic.tally.acted) == (matched, max(0, matched - skip))
        counters = rig.link.counters
        assert counters.bytes_in == counters.bytes_out + counters.bytes_dropped
        rig.client.eof_received()
        await asyncio.sleep(1)
        assert rig.sink.closed

    play(scenario)


def test_a_torn_header_at_the_end_of_a_stream_passes() -> None:
    """A client that dies in the middle of a header leaves its bytes, and the end."""

    async def scenario(rig: Rig) -> None:
        rig.add("hold_frame", api_keys=APIS)
        send(rig, request(PRODUCE, 1) + request(END_TXN, 2)[:7], range(30))
        assert rig.sink.written == request(PRODUCE, 1)
        rig.client.eof_received()
        assert rig.sink.written == rig.sent
        assert rig.sink.closed

    play(scenario)


def test_a_held_frame_waits_with_all_that_is_behind_and_nothing_before() -> None:
    """It is delivered when the toxic goes, in order; the tally tells when it came by."""

    async def scenario(rig: Rig) -> None:
        toxic = rig.add("hold_frame", api_keys=APIS, count=1)
        send(rig, request(PRODUCE, 1))
        assert toxic.tally.acted == 0
        send(rig, request(END_TXN, 2) + request(PRODUCE, 3), [5, 17])
        assert rig.sink.written == request(PRODUCE, 1)
        assert (toxic.tally.acted, toxic.tally.last_api_key) == (1, END_TXN)
        rig.remove(0)
        assert rig.sink.written == rig.sent
        assert not rig.sink.closed and rig.link.fast

    play(scenario)


def test_a_lossy_hold_ends_in_a_closed_connection() -> None:
    """What is held is never delivered; a connection on which nothing is held stays open."""

    async def scenario(rig: Rig) -> None:
        for held in (False, True):
            rig.add("hold_frame", api_keys=APIS, lossy=1)
            send(rig, request(END_TXN if held else PRODUCE, 2))
            rig.remove(0)
            assert rig.sink.written == request(PRODUCE, 2)
            assert rig.sink.closed is held

    play(scenario)


def test_what_is_held_is_bounded() -> None:
    """The source is not read anymore once a few chunks wait."""

    async def scenario(rig: Rig) -> None:
        rig.add("hold_frame", api_keys=APIS)
        send(rig, request(END_TXN, 1))
        while rig.source.reading:
            send(rig, bytes(CHUNK_BYTES))
        assert rig.link.held_bytes <= HoldFrameStage.input_capacity * CHUNK_BYTES

    play(scenario)


def test_a_delayed_frame_is_late_and_keeps_its_place() -> None:
    """Counted from its first byte; what is behind it waits too, and what is before it does not."""

    async def scenario(rig: Rig) -> None:
        rig.add("delay_frame", api_keys=APIS, delay=200)
        send(rig, request(PRODUCE, 1) + request(END_TXN, 2) + request(PRODUCE, 3))
        await asyncio.sleep(0.19)
        assert rig.sink.written == request(PRODUCE, 1)
        await asyncio.sleep(0.02)
        assert rig.sink.written == rig.sent

    play(scenario)


def test_a_cut_comes_at_its_frame() -> None:
    """What was before it is delivered, the frame and what is behind it are not, and the connection closes."""

    async def scenario(rig: Rig) -> None:
        toxic = rig.add("cut_frame", api_keys=APIS, skip=1)
        kept = request(END_TXN, 1) + request(PRODUCE, 2)
        send(rig, kept)
        send(rig, request(END_TXN, 3) + request(PRODUCE, 4))
        assert rig.sink.written == kept
        assert rig.sink.closed and not rig.was_reset
        assert (toxic.tally.matched, toxic.tally.acted) == (2, 1)

    play(scenario)


@given(st.integers(1, 60), cuts)
def test_a_cut_frame_is_delivered_in_part(kept_bytes: int, at: list[int]) -> None:
    """As many bytes of it as were asked for, but never all, however it comes; then the connection closes."""
    whole = request(END_TXN, 2, bytes(range(30)))

    async def scenario(rig: Rig) -> None:
        toxic = rig.add("cut_frame", api_keys=APIS, kept=kept_bytes)
        before = request(PRODUCE, 1)
        send(rig, before + whole + request(PRODUCE, 3), at)
        assert rig.sink.written == before + whole[: min(kept_bytes, len(whole) - 1)]
        assert rig.sink.closed and not rig.was_reset
        assert toxic.tally.acted == 1

    play(scenario)


@given(cuts)
def test_a_connection_closes_behind_a_frame(at: list[int]) -> None:
    """The frame is delivered whole, however it comes, and nothing behind it is."""

    async def scenario(rig: Rig) -> None:
        rig.add("close_frame", api_keys=APIS, skip=1)
        kept = request(END_TXN, 1) + request(PRODUCE, 2) + request(END_TXN, 3, bytes(20))
        send(rig, kept + request(PRODUCE, 4), at)
        assert rig.sink.written == kept
        assert rig.sink.closed and not rig.was_reset

    play(scenario)


def test_how_long_a_frame_was_delayed_is_told() -> None:
    """By the proxy's own clock, when it has moved on and not before; a frame that is not meant does not count."""

    async def scenario(rig: Rig) -> None:
        toxic = rig.add("delay_frame", api_keys=APIS, delay=300)
        send(rig, request(PRODUCE, 1) + request(END_TXN, 2))
        await asyncio.sleep(0.2)
        assert (toxic.tally.acted, toxic.tally.longest_ms) == (1, 0)
        await asyncio.sleep(0.2)
        assert 300 <= toxic.tally.longest_ms < 320

    play(scenario)


def test_a_dropped_frame_that_is_half_gone_when_its_toxic_goes_closes_the_connection() -> None:
    """The rest of it would be read as another frame's beginning."""

    async def scenario(rig: Rig) -> None:
        rig.add("drop_frame", api_keys=APIS)
        send(rig, request(END_TXN, 1, bytes(50))[:30])
        rig.remove(0)
        assert rig.sink.written == b"" and rig.sink.closed

    play(scenario)


def test_a_large_frame_is_not_repeated() -> None:
    """Its copy would take more memory than a proxy gives; it passes once, and does not count."""

    async def scenario(rig: Rig) -> None:
        toxic = rig.add("repeat_frame", api_keys=APIS)
        send(rig, request(END_TXN, 1, bytes(MAX_REPEATED_BYTES)))
        assert rig.sink.written == rig.sent
        assert toxic.tally.acted == 0

    play(scenario)


# --- answers


@given(cuts)
def test_an_answer_is_known_by_its_request(at: list[int]) -> None:
    """Answers have no API key: they are matched by the correlation ids of the requests that passed meanwhile."""

    async def scenario(rig: Rig) -> None:
        attributes = {"api_keys": APIS, "skip": 0, "count": 0}
        before, sent = request(END_TXN, 1), [request(PRODUCE, 2), request(END_TXN, 3), request(PRODUCE, 4)]
        send(rig, before)
        toxic = Toxic("t", TOXIC_TYPES["drop_frame"], "downstream", PipeDirection.DOWNSTREAM, 1.0, attributes)
        rig.back.add(toxic)
        send(rig, b"".join(sent), at)
        for piece in pieces(b"".join(answer(number, b"yes") for number in (1, 2, 3, 4)), at):
            rig.server.data_received(piece)
        assert rig.source.written == b"".join(answer(number, b"yes") for number in (1, 2, 4))
        assert (toxic.tally.matched, toxic.tally.acted) == (1, 1)

    play(scenario)


@given(cuts)
def test_the_second_answer_to_a_repeated_request_is_swallowed(at: list[int]) -> None:
    """The client asked once; the first answer is its answer, and those to other requests are untouched."""

    async def scenario(rig: Rig) -> None:
        surplus = Toxic("surplus", SURPLUS, "downstream", PipeDirection.DOWNSTREAM)
        rig.dialogue.on_repeat = lambda: rig.back.add(surplus)
        rig.add("repeat_frame", api_keys=APIS, count=1)
        rig.client.data_received(request(PRODUCE, 1) + request(END_TXN, 2) + request(PRODUCE, 3))
        answers = [answer(1), answer(2, b"first"), answer(2, b"second"), answer(3), answer(2, b"another")]
        for piece in pieces(b"".join(answers), at):
            rig.server.data_received(piece)
        assert rig.source.written == b"".join([*answers[:2], *answers[3:]])

    play(scenario)
