"""reset_peer: the first chunk, or the end, starts a wait of ``timeout`` ms; then both sides get a RST.

Data is discarded from the first chunk on. An idle connection is not touched. The wait cannot be called off: bytes
are missing by then, so removing the toxic during the wait resets at once.
"""

from __future__ import annotations

from chaos.proxy.pipe import Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType
from cluster.seams.units import seconds_of_ms


class ResetPeerStage(Stage):
    _timeout_ms: int
    _reset_at: float | None = None

    def configure(self, attributes: Attributes, now: float) -> None:
        self._timeout_ms = attributes["timeout"]

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        if self._reset_at is None:
            if not source.chunks and not source.ended:
                return None
            self._reset_at = now + seconds_of_ms(self._timeout_ms)
        self.drop(source)
        if sink.ended:
            return None
        if self._reset_at > now:
            return self._reset_at
        sink.end(reset=True)
        return None

    def on_removal(self, source: Pipe, sink: Pipe) -> None:
        if self._reset_at is not None:
            self.drop(source)
            sink.end(reset=True)


RESET_PEER = ToxicType("reset_peer", "ResetToxic", ("timeout",), ResetPeerStage)
