"""latency: delays each chunk by ``latency`` +- ``jitter`` ms since it was received. The order of chunks is kept.

Chunks wait at the same time, up to 1024 of them: a large transfer is late once, not once per chunk.
"""

from __future__ import annotations

from chaos.proxy.pipe import Chunk, Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType, pass_end
from cluster.seams.units import seconds_of_ms


class DelayStage(Stage):
    """Holds each chunk until it is due. A later chunk is never sent before an earlier one."""

    input_capacity = 1024
    _due_at: float | None

    def delay_ms(self) -> float:
        """The delay of the next chunk; drawn once per chunk."""
        raise NotImplementedError

    def configure(self, attributes: Attributes, now: float) -> None:
        self._due_at = None

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        while source.chunks and not sink.full:
            if self._due_at is None:
                received_at = source.chunks[0].received_at
                self._due_at = received_at + seconds_of_ms(max(0.0, self.delay_ms()))
            if self._due_at > now:
                return self._due_at
            chunk = source.pop()
            # the next toxic counts its delay from this time
            sink.push(Chunk(chunk.data, self._due_at))
            self._due_at = None
        pass_end(source, sink)
        return None


class LatencyStage(DelayStage):
    _latency_ms: int
    _jitter_ms: int

    def configure(self, attributes: Attributes, now: float) -> None:
        super().configure(attributes, now)
        self._latency_ms = attributes["latency"]
        self._jitter_ms = attributes["jitter"]

    def delay_ms(self) -> float:
        if self._jitter_ms <= 0:
            return self._latency_ms
        return self._latency_ms + self.random.uniform(-self._jitter_ms, self._jitter_ms)


LATENCY = ToxicType("latency", "LatencyToxic", ("latency", "jitter"), LatencyStage)
