"""The stages as state machines on two pipes and a time: exact, without sockets or waiting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.proxy.pipe import Chunk, Pipe, StreamCounters
from chaos.proxy.toxics import TOXIC_TYPES
from chaos.proxy.toxics.base import Stage
from chaos.proxy.toxics.slicer import slice_sizes
from cluster.seams.randomness import derive


class Bench:
    """One stage between two pipes."""

    def __init__(self, kind: str, now: float = 0.0, **attributes: int) -> None:
        toxic_type = TOXIC_TYPES[kind]
        values = dict.fromkeys(toxic_type.attributes, 0) | attributes
        self.counters = StreamCounters()
        self.stage: Stage = toxic_type.stage(values, derive(1, kind), self.counters, now)
        self.source, self.sink = Pipe(), Pipe(capacity=1000)

    def put(self, size: int, at: float) -> None:
        self.source.push(Chunk(memoryview(bytes(size)), at))

    def step(self, now: float) -> float | None:
        return self.stage.step(now, self.source, self.sink)

    def out(self) -> list[int]:
        return [len(chunk.data) for chunk in self.sink.chunks]


def test_latency_counts_from_the_receive_time() -> None:
    """Chunks received together leave together; the delay of one is no delay of the next."""
    bench = Bench("latency", latency=100)
    bench.put(1, at=0.0)
    bench.put(2, at=0.03)
    assert bench.step(0.05) == pytest.approx(0.1)
    assert bench.step(0.11) == pytest.approx(0.13)
    assert bench.out() == [1]
    assert bench.step(0.13) is None
    assert bench.out() == [1, 2]


def test_latency_keeps_order_under_jitter() -> None:
    """A chunk with a short delay waits behind one with a long delay."""
    bench = Bench("latency", latency=0, jitter=50)
    for size in range(1, 30):
        bench.put(size, at=0.0)
    now = 0.0
    while (due := bench.step(now)) is not None:
        assert now < due <= 0.05
        now = due
    assert bench.out() == list(range(1, 30))


def test_negative_latency_is_no_delay() -> None:
    """Toxiproxy takes negative numbers; they mean nothing."""
    bench = Bench("latency", latency=-500)
    bench.put(1, at=0.0)
    assert bench.step(0.0) is None
    assert bench.out() == [1]


def test_stacked_latencies_add_up() -> None:
    """A chunk leaves with the time of its release, from which the next toxic counts."""
    bench = Bench("latency", latency=100)
    bench.put(1, at=0.0)
    bench.step(0.2)
    assert bench.sink.chunks[0].received_at == pytest.approx(0.1)


def test_the_end_waits_behind_delayed_bytes() -> None:
    """An end is not delayed itself, and never overtakes."""
    bench = Bench("latency", latency=100)
    bench.put(1, at=0.0)
    bench.source.end()
    bench.step(0.05)
    assert not bench.sink.ended
    bench.step(0.1)
    assert bench.sink.ended


def test_bandwidth_paces_by_bytes() -> None:
    """100 KB/s: 5000 bytes take 50 ms each, and late timers do not slow the line down."""
    bench = Bench("bandwidth", rate=100)
    for _ in range(4):
        bench.put(5000, at=0.0)
    assert bench.step(0.0) == pytest.approx(0.05)
    assert bench.step(0.06) == pytest.approx(0.1)
    assert bench.step(0.11) == pytest.approx(0.15)
    assert bench.step(0.151) == pytest.approx(0.2)


def test_bandwidth_earns_nothing_while_idle() -> None:
    """A line that was idle does not send faster afterwards."""
    bench = Bench("bandwidth", rate=100)
    bench.put(5000, at=10.0)
    assert bench.step(10.0) == pytest.approx(10.05)


def test_bandwidth_zero_holds_bytes_and_end() -> None:
    """Nothing moves, not even the end; it never asks to be woken."""
    bench = Bench("bandwidth", rate=0)
    bench.put(5, at=0.0)
    bench.source.end()
    assert bench.step(1e6) is None
    assert (bench.out(), bench.sink.ended) == ([], False)


def test_an_update_sets_no_byte_free() -> None:
    """What is held is judged by the new values; a cut that is updated to a cut leaks nothing."""
    bench = Bench("bandwidth", rate=0)
    bench.put(1000, at=0.0)
    bench.step(0.0)
    bench.stage.configure({"rate": 0}, 1.0)
    assert bench.step(1.0) is None
    bench.stage.configure({"rate": 10}, 2.0)
    assert bench.step(2.0) == pytest.approx(2.1)
    assert bench.out() == []


def test_timeout_drops_counts_and_passes_the_end() -> None:
    """Bytes are counted as dropped; an end from the source is not swallowed."""
    bench = Bench("timeout", timeout=0)
    bench.put(7, at=0.0)
    bench.step(0.0)
    assert (bench.counters.bytes_dropped, bench.sink.ended) == (7, False)
    bench.source.end()
    bench.step(0.0)
    assert bench.sink.ended


def test_timeout_restarts_with_data() -> None:
    """The time runs from the last chunk."""
    bench = Bench("timeout", timeout=100)
    assert bench.step(0.0) == pytest.approx(0.1)
    bench.put(1, at=0.09)
    assert bench.step(0.09) == pytest.approx(0.19)
    bench.step(0.19)
    assert bench.sink.ended
    assert not bench.sink.reset


def test_slow_close_delays_the_end_and_an_update_restarts_it() -> None:
    """Data passes at once; the end comes after the delay."""
    bench = Bench("slow_close", delay=100)
    bench.put(3, at=0.0)
    bench.source.end()
    assert bench.step(0.0) == pytest.approx(0.1)
    assert bench.out() == [3]
    bench.stage.configure({"delay": 50}, 0.08)
    assert bench.step(0.08) == pytest.approx(0.13)
    bench.step(0.13)
    assert bench.sink.ended


def test_limit_data_drops_what_is_beyond() -> None:
    """Exactly the limit passes, the rest of the chunk is counted as dropped, the stream ends."""
    bench = Bench("limit_data", bytes=10)
    bench.put(6, at=0.0)
    bench.put(6, at=0.0)
    bench.step(0.0)
    assert (bench.out(), bench.sink.ended, bench.counters.bytes_dropped) == ([6, 4], True, 2)


@pytest.mark.parametrize("first", ["data", "end"])
def test_reset_peer_waits_then_resets(first: str) -> None:
    """The first chunk or the end starts the wait; the sink ends with a reset; bytes are dropped."""
    bench = Bench("reset_peer", timeout=100)
    assert bench.step(0.0) is None
    if first == "data":
        bench.put(5, at=1.0)
    else:
        bench.source.end()
    assert bench.step(1.0) == pytest.approx(1.1)
    assert not bench.sink.ended
    bench.step(1.1)
    assert (bench.sink.ended, bench.sink.reset) == (True, True)
    assert bench.counters.bytes_dropped == (5 if first == "data" else 0)


def test_reset_peer_cannot_be_called_off() -> None:
    """Removed during its wait, it resets at once: bytes are missing already. Removed before, it does nothing."""
    idle, waiting = Bench("reset_peer", timeout=100), Bench("reset_peer", timeout=100)
    waiting.put(5, at=0.0)
    for bench in (idle, waiting):
        bench.step(0.0)
        bench.stage.on_removal(bench.source, bench.sink)
    assert (idle.sink.ended, waiting.sink.reset) == (False, True)


def test_stall_by_probability() -> None:
    """1000 permille stalls every chunk between min and max, 0 none, and 500 some."""
    never, always, some = (
        Bench("stall", probability_permille=permille, min_ms=20, max_ms=60) for permille in (0, 1000, 500)
    )
    never.put(1, at=0.0)
    assert never.step(0.0) is None
    always.put(1, at=0.0)
    due = always.step(0.0)
    assert due is not None
    assert 0.02 <= due <= 0.06
    stalled = 0
    for start in range(100):
        some.put(1, at=float(start))
        due = some.step(float(start))
        if due is not None:
            stalled += 1
            some.step(due)
    assert 30 <= stalled <= 70


@given(st.integers(1, 40_000), st.integers(1, 3000), st.integers(0, 3000), st.integers(0, 2**32))
def test_slices_add_up(size: int, average: int, variation: int, seed: int) -> None:
    """Slices are never empty, never above average + variation, and add up to the chunk, for any values."""
    sizes = slice_sizes(size, average, variation, derive(seed, "slices"))
    assert sum(sizes) == size
    assert min(sizes) >= 1
    assert max(sizes) <= max(average + variation, 1)


def test_slicer_waits_after_each_slice() -> None:
    """Slices follow each other by the delay, the end too."""
    bench = Bench("slicer", average_size=10, delay=20_000)
    bench.put(20, at=0.0)
    bench.source.end()
    assert bench.step(0.0) == pytest.approx(0.02)
    assert bench.step(0.02) == pytest.approx(0.04)
    assert (bench.out(), bench.sink.ended) == ([10, 10], False)
    bench.step(0.04)
    assert bench.sink.ended


def test_take_splits_and_counts() -> None:
    """Taking a part leaves the rest first, and the pipe knows how much it holds."""
    pipe = Pipe()
    pipe.push(Chunk(memoryview(b"abcdef"), 1.0))
    assert bytes(pipe.take(2).data) == b"ab"
    assert (pipe.held_bytes, bytes(pipe.chunks[0].data)) == (4, b"cdef")
    assert bytes(pipe.take(9).data) == b"cdef"
    assert (pipe.held_bytes, len(pipe.chunks)) == (0, 0)
