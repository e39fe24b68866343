"""slow_close: lets data pass, and closes the connection ``delay`` ms after the end of the data."""

from __future__ import annotations

from chaos.proxy.pipe import Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType
from cluster.seams.units import seconds_of_ms


class SlowCloseStage(Stage):
    _delay_ms: int
    _close_at: float | None

    def configure(self, attributes: Attributes, now: float) -> None:
        self._delay_ms = attributes["delay"]
        self._close_at = None  # an update during the wait restarts the wait

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        while source.chunks and not sink.full:
            sink.push(source.pop())
        if not source.exhausted or sink.ended:
            return None
        if self._close_at is None:
            self._close_at = now + seconds_of_ms(self._delay_ms)
        if self._close_at > now:
            return self._close_at
        sink.end(reset=source.reset)
        return None


SLOW_CLOSE = ToxicType("slow_close", "SlowCloseToxic", ("delay",), SlowCloseStage)
