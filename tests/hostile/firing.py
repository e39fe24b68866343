"""Hostile frames on connections: some together on each, until every one of them was answered or closed its connection.

Owns which frames share a connection, what became of each, and the counts. A frame that the broker closed the connection
for takes those behind it along: they are sent again, so that each is taken once at least. Does not own the sockets
(``tests.support.attack``), nor the frames (``mutations``).
"""

from __future__ import annotations

import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.hostile.mutations import Hostile, hostile
from tests.support.attack import Outcome, Shot, fire

#: Frames of one connection.
TOGETHER = 6
#: Connections at once: of few, so that a producer beside them gets its turn.
WINDOW = 24
#: Connections that took longer are remembered, the last of them.
NOTED_S = 0.1
REMEMBERED = 2000
#: Within this each connection must have ended: topics are made and deleted one after the other, each with its files.
BOUND_S = 60.0


class Volley(Shot):
    """One connection with its frames, in their order."""

    __slots__ = ("frames",)

    def __init__(self, port: int, frames: list[Hostile]) -> None:
        super().__init__(port, b"".join(each.wire for each in frames))
        self.frames = frames

    def __repr__(self) -> str:
        return f"Volley({self.frames})"

    def answered(self) -> int:
        """How many frames were answered, or passed over before one that was. Fails if an answer is no frame's."""
        found = 0
        data, position = memoryview(self.got), 0
        while position + 8 <= len(data):
            size, correlation_id = struct.unpack_from(">ii", data, position)
            assert size >= 4, f"an answer of {size} bytes to {self.frames}"
            position += 4 + size
            if position > len(data):
                break
            while found < len(self.frames) and self.frames[found].wire[8:12] != correlation_id.to_bytes(
                4, "big", signed=True
            ):
                found += 1
            assert found < len(self.frames), f"answer {correlation_id} is to none of {self.frames}"
            found += 1
        return found


@dataclass
class Counts:
    """What became of the frames that are done with."""

    outcome: Outcome = field(default_factory=Outcome)
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    closed: Counter[tuple[str, str]] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    #: When each of the slow ones began and ended, on the monotonic clock, and its frames.
    slow: deque[tuple[float, float, list[Hostile]]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def frames(self) -> int:
        return self.answered.total() + self.closed.total()

    def __repr__(self) -> str:
        return f"Counts({self.frames} frames, {self.answered.total()} answered)"

    def during(self, begun: float, ended: float) -> list[Hostile]:
        """The frames of slow connections that were open between two times."""
        return [frame for first, last, frames in self.slow if first <= ended and last >= begun for frame in frames]

    def note(self, frame: Hostile, *, is_answered: bool) -> None:
        counter = self.answered if is_answered else self.closed
        counter[frame.listener, frame.api_key.name] += 1
        self.kinds[frame.kind] += 1

    def table(self) -> list[str]:
        """One line for each listener and API."""
        keys = sorted({*self.answered, *self.closed})
        lines = [f"{'listener':8} {'API':30} {'answered':>9} {'closed':>9}"]
        lines += [f"{name:8} {api:30} {self.answered[name, api]:9} {self.closed[name, api]:9}" for name, api in keys]
        return lines


def fire_seeds(
    ports: Mapping[str, int],
    seeds: range,
    counts: Counts,
    frame_of: Callable[[int], Hostile] = hostile,
    done: Callable[[], None] = lambda: None,
) -> None:
    """Send the frame of each seed to its listener. ``done`` hears of each connection that has ended.

    Fails if a connection does not end.
    """
    again: deque[Volley] = deque()
    shots = _volleys(ports, seeds, frame_of, again)

    def ended(volley: Volley) -> None:
        answered = volley.answered()
        if (now := time.monotonic()) - volley.begun > NOTED_S:
            counts.slow.append((volley.begun, now, volley.frames))
        for frame in volley.frames[:answered]:
            counts.note(frame, is_answered=True)
        # The first without an answer has ended the connection, or wants none.
        for frame in volley.frames[answered : answered + 1]:
            counts.note(frame, is_answered=False)
        if rest := volley.frames[answered + 1 :]:
            again.append(Volley(volley.port, rest))
        done()

    fire(shots, counts.outcome, WINDOW, ended, BOUND_S)
    while again:
        fire(_drained(again), counts.outcome, WINDOW, ended, BOUND_S)


def _drained(again: deque[Volley]) -> Iterator[Volley]:
    while again:
        yield again.popleft()


def _volleys(
    ports: Mapping[str, int], seeds: range, frame_of: Callable[[int], Hostile], again: deque[Volley]
) -> Iterator[Volley]:
    waiting: dict[str, list[Hostile]] = {name: [] for name in ports}
    for seed in seeds:
        frame = frame_of(seed)
        frames = waiting[frame.listener]
        frames.append(frame)
        if frame.ends or len(frames) >= TOGETHER:
            waiting[frame.listener] = []
            yield Volley(ports[frame.listener], frames)
        yield from _drained(again)
    for name, frames in waiting.items():
        if frames:
            yield Volley(ports[name], frames)
