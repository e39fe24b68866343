"""noop: lets everything pass."""

from __future__ import annotations

from chaos.proxy.pipe import Pipe
from chaos.proxy.toxics.base import Attributes, Stage, ToxicType, pass_all


class NoopStage(Stage):
    def configure(self, attributes: Attributes, now: float) -> None:
        return

    def step(self, now: float, source: Pipe, sink: Pipe) -> float | None:
        pass_all(source, sink)
        return None


NOOP = ToxicType("noop", "NoopToxic", (), NoopStage)
