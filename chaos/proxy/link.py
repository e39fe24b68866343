"""One direction of one connection: from a source endpoint through the toxics of its stream to a sink endpoint.

A link is *fast* if no toxic applies and no bytes are held: then the source's protocol writes directly to the sink's
transport, and only a full write buffer stops the reading. Otherwise bytes move as chunks through pipes and stages. The
pump moves them when input arrives, when a timer fires, or when the sink has room again. A link changes between both
modes between two steps of the event loop, so no byte is lost or overtaken.

Owns that, and the counters of the stream (docs/reference/toxiproxy.md "Connections"). Does not own sockets
(``connection``) or what a toxic does (``toxics``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from chaos.proxy.frames import Dialogue, FrameWalk
from chaos.proxy.pipe import CHUNK_BYTES, Chunk, Pipe, PipeDirection, StreamCounters
from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics.base import Stage, pass_all
from chaos.proxy.toxics.frames import FrameStage
from cluster.seams.randomness import Random

#: The number of rounds over all stages before other links get a turn. A round moves at most a pipe's capacity.
_ROUNDS_PER_TURN = 64


class ByteSource(Protocol):
    """Where the bytes of a link come from."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Sink(Protocol):
    """Where the bytes of a link go."""

    def write(self, data: bytes | memoryview) -> None: ...

    def close(self) -> None:
        """Deliver what was written, then close both directions."""
        ...


@dataclass(slots=True)
class _Fitted:
    """A toxic on this link, its stage, and whether it applies to this link.

    Its toxicity is the probability that it applies. That is drawn when the toxic is added, and again at each update.
    """

    toxic: Toxic
    stage: Stage
    random: Random
    applies: bool


class Link:
    """One direction of one connection. All calls come from the event loop, and none of them waits."""

    def __init__(
        self,
        direction: PipeDirection,
        source: ByteSource,
        sink: Sink,
        toxics: Iterable[Toxic],
        random_for: Callable[[str], Random],
        reset: Callable[[], None],
        dialogue: Dialogue,
    ) -> None:
        self.direction = direction
        #: follows the frames in the delivered bytes
        self.walk = FrameWalk(direction, dialogue)
        self.counters = StreamCounters()
        #: the source may write to the sink directly
        self.fast = True
        #: nothing is delivered anymore; later bytes are discarded
        self.finished = False
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._random_for = random_for
        self._reset = reset
        self._dialogue = dialogue
        self._blocked = False  # the sink's write buffer is full
        self._reading = True
        self._pumping = False
        self._source_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._fitted: list[_Fitted] = []
        # pipes[i] feeds stage i; the last one feeds the sink
        self._pipes: list[Pipe] = [Pipe()]
        for toxic in toxics:
            self._fit(toxic)
        self._pump()

    def __repr__(self) -> str:
        state = "finished" if self.finished else "fast" if self.fast else "slow"
        return f"Link({self.direction}, {state}, {self.held_bytes} bytes held)"

    @property
    def held_bytes(self) -> int:
        """The bytes that were received, but not delivered, dropped or discarded yet."""
        return sum(pipe.held_bytes for pipe in self._pipes)

    def applied_toxics(self) -> list[str]:
        """The names of the toxics that apply to this link."""
        return [fitted.toxic.name for fitted in self._fitted if fitted.applies]

    # --- bytes -------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes from the source while the link is not fast. The caller has counted them in ``bytes_in``."""
        head = self._pipes[0]
        if self.finished or head.ended:
            self.counters.bytes_discarded += len(data)
            return
        now = self._loop.time()
        view = memoryview(data)
        for start in range(0, len(view), CHUNK_BYTES):
            head.push(Chunk(view[start : start + CHUNK_BYTES], now))
        self._pump()

    def source_ended(self) -> None:
        """The source has sent its end or is lost."""
        if self._source_ended:
            return
        self._source_ended = True
        self._pipes[0].end()
        self._pump()

    def sink_lost(self) -> None:
        """The sink is lost, so nothing can be delivered."""
        self._finish()

    def sink_blocked(self) -> None:
        """The sink's write buffer is full."""
        self._blocked = True
        self._regulate()

    def sink_ready(self) -> None:
        """The sink's write buffer has room again."""
        self._blocked = False
        self._pump()

    # --- toxics ------------------------------------------------------------------------------------------------

    def add(self, toxic: Toxic) -> None:
        """Add a toxic to the end of the chain. Bytes that are not delivered yet pass through it."""
        if not self.finished:
            self._fit(toxic)
            self._pump()

    def update(self, toxic: Toxic) -> None:
        """Apply a change of the toxic's attributes or toxicity."""
        for fitted in self._fitted:
            if fitted.toxic is toxic:
                fitted.applies = fitted.random.random() < toxic.toxicity
                fitted.stage.configure(toxic.attributes, self._loop.time())
        self._pump()

    def remove(self, toxic: Toxic) -> None:
        """Remove a toxic. The bytes that it held are passed on at once, unless its removal ends the stream."""
        for index, fitted in enumerate(self._fitted):
            if fitted.toxic is toxic:
                source, sink = self._pipes[index], self._pipes[index + 1]
                fitted.stage.on_removal(source, sink)
                self.counters.bytes_discarded += sink.absorb(source)
                del self._fitted[index], self._pipes[index]
                break
        self._pump()

    def _fit(self, toxic: Toxic) -> None:
        random = self._random_for(toxic.name)
        applies = random.random() < toxic.toxicity
        stage = toxic.toxic_type.stage(toxic.attributes, random, self.counters, self._loop.time())
        if isinstance(stage, FrameStage):
            # this stage is the last one, so its input begins where delivered bytes end
            stage.place(toxic.tally, self.walk, self.direction, self._dialogue)
        self._pipes[-1].capacity = stage.input_capacity
        self._pipes.append(Pipe())
        self._fitted.append(_Fitted(toxic, stage, random, applies))

    # --- the pump ----------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Move everything that may move now. Then set the timer, ``fast``, and whether to read from the source."""
        if self.finished or self._pumping:
            return
        self.fast = False
        self._pumping = True
        try:
            wake_at = self._move_all()
        finally:
            self._pumping = False
        last = self._pipes[-1]
        if last.exhausted:
            self._finish(reset=last.reset)
            return
        self._set_timer(wake_at)
        if not self._source_ended and not any(fitted.applies for fitted in self._fitted):
            self.fast = all(not pipe.chunks and not pipe.ended for pipe in self._pipes)
        self._regulate()

    def _move_all(self) -> float | None:
        """Deliver and step until nothing moves anymore. Returns the earliest time at which a stage wants to run again.

        After ``_ROUNDS_PER_TURN`` rounds it returns the current time, so that a busy link (for example with a slicer of
        single bytes) does not keep the event loop from the others.
        """
        for _ in range(_ROUNDS_PER_TURN):
            moves_before = sum(pipe.moves for pipe in self._pipes)
            self._deliver()
            wake_at = self._step_stages()
            if sum(pipe.moves for pipe in self._pipes) == moves_before:
                return wake_at
        return self._loop.time()

    def _deliver(self) -> None:
        last = self._pipes[-1]
        while last.chunks and not self._blocked:
            data = last.pop().data
            self.counters.bytes_out += len(data)
            self.walk.advance(data)
            self._sink.write(data)

    def _step_stages(self) -> float | None:
        """Run one step of every stage, beginning with the last one, which makes room for the one before."""
        now = self._loop.time()
        wake_at: float | None = None
        for index in range(len(self._fitted) - 1, -1, -1):
            fitted, source, sink = self._fitted[index], self._pipes[index], self._pipes[index + 1]
            if sink.ended:
                self.counters.bytes_discarded += source.clear()
            elif fitted.applies:
                due_at = fitted.stage.step(now, source, sink)
                if due_at is not None and (wake_at is None or due_at < wake_at):
                    wake_at = due_at
            else:
                pass_all(source, sink)
        return wake_at

    def _set_timer(self, wake_at: float | None) -> None:
        if self._timer is not None:
            if self._timer.when() == wake_at:
                return
            self._timer.cancel()
        self._timer = None if wake_at is None else self._loop.call_at(wake_at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    def _regulate(self) -> None:
        """Read from the source only while there is room. A finished link reads, to notice the end of the source."""
        wanted = self.finished or not (self._blocked if self.fast else self._pipes[0].full)
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._source.resume_reading()
            else:
                self._source.pause_reading()

    def _finish(self, *, reset: bool = False) -> None:
        """End the stream: discard held bytes, and close the sink or, with ``reset``, reset both sides."""
        if self.finished:
            return
        self.finished = True
        self.fast = False
        self._set_timer(None)
        self.counters.bytes_discarded += sum(pipe.clear() for pipe in self._pipes)
        if reset:
            self._reset()
        else:
            self._sink.close()
        self._regulate()
