"""bandwidth: at most ``rate`` KB/s (1 KB is 1000 bytes) pass. 0 holds everything, also the end: a lossless pause.

A chunk is sent when a line with that rate would have sent its last byte. A large chunk is sent in pieces of 100 ms.
"""

from __future__ import annotations

from chaos.proxy.pipe import Chunk, Pipe
from chaos.proxy.toxics.base import CATCH_UP_S, Attributes, Stage, ToxicType, pass_end
from cluster.seams.units import seconds_of_ms

_PIECE_MS = 100


class BandwidthStage(Stage):
    _rate_bytes_per_ms: int
    _line_free_at: float

    def configure(self, attributes: Attributes, now: float) -> None:
        self._rate_bytes_per_ms = attributes["rate"]
        self._line_free_at = now

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        rate = self._rate_bytes_per_ms
        if rate <= 0:
            return None
        while source.chunks and not sink.full:
            head = source.chunks[0]
            size = min(len(head.data), rate * _PIECE_MS)
            due_at = max(self._line_free_at, head.received_at) + seconds_of_ms(size / rate)
            if due_at > now:
                return due_at
            sink.push(Chunk(source.take(size).data, due_at))
            self._line_free_at = max(due_at, now - CATCH_UP_S)
        pass_end(source, sink)
        return None


BANDWIDTH = ToxicType("bandwidth", "BandwidthToxic", ("rate",), BandwidthStage)
