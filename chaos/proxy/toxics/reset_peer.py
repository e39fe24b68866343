"""reset_peer: ``timeout`` ms after the first chunk, or after the end, sends a RST to both sides.

Discards all data, including the first chunk. Leaves an idle connection alone. Removing the toxic during the wait resets
the connection at once, because bytes are missing already.
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
