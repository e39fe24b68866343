"""Planted examples for the anomalies of serving, each with its nearest legal neighbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.stories import SECOND, Story, row
from tests.verifier.planted.changes import change
from tests.verifier.planted.model import Planted
from verifier.evidence.run_model import PhaseSpan

#: When everything was healed, after all that the story acknowledges; writers go on until 14 s.
HEALED_NS, TRIED_NS = 5 * SECOND, 14 * SECOND


def healed(waited_ms: int, *, tried_ns: int = TRIED_NS, acked_ns: int | None = None) -> Callable[[Story], None]:
    """After the heal the load went on for so long; stream 1 tried one more record, whose outcome nobody knows.

    ``acked_ns``: when the last acknowledgement of stream 1 came.
    """

    def plant(story: Story) -> None:
        story.phases = [
            PhaseSpan("start", 0, SECOND),
            PhaseSpan("heal", 4 * SECOND, HEALED_NS),
            PhaseSpan("recovery", HEALED_NS, HEALED_NS + waited_ms * SECOND // 1000),
            PhaseSpan("stop", 54 * SECOND, 55 * SECOND),
        ]
        tried = row("send", "info", 0, 1, 12, 12, -1)._replace(invoke_ns=3 * SECOND, complete_ns=tried_ns)
        story.rows["producer-1"] += [row("reserve", "invoke", 0, 1, 12, 12, -1), tried]
        if acked_ns is not None:
            change(story, "send", (1, 9), complete_ns=acked_ns)

    return plant


STALLED = {("stalled", None): {"count": 1, "size": 1, "stream": None, "offset": None}}

PLANTED: Mapping[str, Planted] = {
    "written to in vain after the heal": Planted(healed(10_000), STALLED, neighbor="acknowledged after the heal"),
    "acknowledged after the heal": Planted(healed(10_000, acked_ns=HEALED_NS + 1)),
    "acknowledged just until the heal": Planted(
        healed(10_000, acked_ns=HEALED_NS), STALLED, neighbor="acknowledged after the heal"
    ),
    "written to in vain for longer than the bound": Planted(
        healed(10_001), STALLED, neighbor="written to in vain for less than the bound"
    ),
    "written to in vain for less than the bound": Planted(healed(9_999)),
    "tried just after the heal": Planted(
        healed(10_000, tried_ns=HEALED_NS + 1), STALLED, neighbor="not written to after the heal"
    ),
    "not written to after the heal": Planted(healed(10_000, tried_ns=HEALED_NS)),
}
