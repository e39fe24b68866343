"""limit_data: lets exactly ``bytes`` bytes pass on each connection and direction, then closes the connection.

An update does not reset the count. With 0, the first chunk closes the connection; an idle connection stays open.
"""

from __future__ import annotations

from chaos.proxy.pipe import Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType, pass_end


class LimitDataStage(Stage):
    _limit_bytes: int
    _passed_bytes: int = 0

    def configure(self, attributes: Attributes, now: float) -> None:
        self._limit_bytes = attributes["bytes"]

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        while source.chunks and not sink.full:
            remaining = self._limit_bytes - self._passed_bytes
            if remaining > 0:
                chunk = source.take(remaining)
                self._passed_bytes += len(chunk.data)
                sink.push(chunk)
            if self._passed_bytes >= self._limit_bytes:
                self.drop(source)
                sink.end()
                return None
        pass_end(source, sink)
        return None


LIMIT_DATA = ToxicType("limit_data", "LimitDataToxic", ("bytes",), LimitDataStage)
