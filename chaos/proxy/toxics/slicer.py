"""slicer: cuts chunks into slices of about ``average_size`` bytes, with ``delay`` microseconds after each."""

from __future__ import annotations

from collections import deque

from chaos.proxy.pipe import Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType, pass_end
from cluster.seams.randomness import Random
from cluster.seams.units import seconds_of_microseconds

#: Timers cannot wait for less than about a millisecond, so slices that are due within this time are sent together.
_TIMER_GRAIN_S = 0.002


def slice_sizes(size: int, average: int, variation: int, random: Random) -> list[int]:
    """Sizes that add up to ``size``: halves a part until it exceeds ``average`` by at most ``variation``.

    Like Toxiproxy, but each cut is inside its part, so that no slice is empty and the loop always ends.
    """
    sizes: list[int] = []
    parts = [size]
    while parts:
        part = parts.pop()
        if part - average <= variation or part < 2:
            sizes.append(part)
            continue
        cut = part // 2
        if variation > 0:
            cut += random.randrange(2 * variation) - variation
        cut = min(max(cut, 1), part - 1)
        parts += (part - cut, cut)
    return sizes


class SlicerStage(Stage):
    _average_bytes: int
    _variation_bytes: int
    _delay_us: int
    _next_at: float
    _sizes: deque[int]

    def configure(self, attributes: Attributes, now: float) -> None:
        self._average_bytes = attributes["average_size"]
        self._variation_bytes = attributes["size_variation"]
        self._delay_us = attributes["delay"]
        self._next_at = now
        self._sizes = deque()

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        while source.chunks and not sink.full:
            if self._next_at > now:
                return self._next_at
            if not self._sizes:
                size = len(source.chunks[0].data)
                self._sizes.extend(slice_sizes(size, self._average_bytes, self._variation_bytes, self.random))
            sink.push(source.take(self._sizes.popleft()))
            paced_from = self._next_at if now - self._next_at < _TIMER_GRAIN_S else now
            self._next_at = paced_from + seconds_of_microseconds(max(0, self._delay_us))
        if source.exhausted and self._next_at > now:
            return self._next_at
        pass_end(source, sink)
        return None


def _validate(attributes: Attributes) -> str | None:
    if attributes["average_size"] < 1:
        return "average_size was invalid, must be at least 1"
    if attributes["size_variation"] < 0:
        return "size_variation was invalid, must not be negative"
    return None


SLICER = ToxicType(
    "slicer",
    "SlicerToxic",
    ("average_size", "size_variation", "delay"),
    SlicerStage,
    integer_kind="int",
    validate=_validate,
)
