"""timeout: drops all data, and closes the connection after ``timeout`` ms without data, or never if that is 0.

The end of the stream passes at once. Removing the toxic closes the connections of its stream, because bytes are missing
(also connections that its toxicity had spared). This makes a lossy cut.
"""

from __future__ import annotations

from chaos.proxy.pipe import Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType, pass_end
from cluster.seams.units import seconds_of_ms


class TimeoutStage(Stage):
    _timeout_ms: int
    _close_at: float

    def configure(self, attributes: Attributes, now: float) -> None:
        self._timeout_ms = attributes["timeout"]
        self._close_at = now + seconds_of_ms(self._timeout_ms)

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        if source.chunks:
            self.drop(source)
            self._close_at = now + seconds_of_ms(self._timeout_ms)
        pass_end(source, sink)
        if self._timeout_ms <= 0 or sink.ended:
            return None
        if self._close_at > now:
            return self._close_at
        sink.end()
        return None

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        self.drop(source)
        sink.end()


TIMEOUT = ToxicType("timeout", "TimeoutToxic", ("timeout",), TimeoutStage)
