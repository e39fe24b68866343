"""Makes the values that the page shows from the state of the run. Pure. Does not own the page (``pages``)."""

from __future__ import annotations

from typing import Any

from cluster.seams.units import seconds_of_ns
from verifier.evidence.live import LiveState

#: The tab on Locust's page. It has no Locust table, because the cells of such tables are plain text.
TAB = {"title": "Chaos", "key": "chaos"}
NOTHING_YET = "Nothing is known about the run yet."


def page(state: LiveState, now_ns: int) -> dict[str, Any]:
    """What the page shows; past faults with the newest first.

    Times are seconds: ``*at_s`` since the run began, as on its stderr, ``at_s`` being now; ``*_for_s`` how long;
    ``age_s`` since the conductor wrote this.
    """

    def since_start(time_ns: int) -> float:
        return _seconds(time_ns - state.started_ns)

    return {
        "name": state.name,
        "seed": state.seed,
        "at_s": since_start(now_ns),
        "phase": state.phase,
        "phase_for_s": _seconds(now_ns - state.phase_since_ns),
        "load_for_s": None if state.load_since_ns is None else _seconds(now_ns - state.load_since_ns),
        "time_limit_s": state.time_limit_s,
        "planned": state.planned,
        "done": state.done,
        "effective": state.effective,
        "active": [
            {
                "fault": each.fault,
                "target": each.target,
                "began_at_s": since_start(each.since_ns),
                "active_for_s": _seconds(now_ns - each.since_ns),
                "healed": each.healed,
            }
            for each in state.active
        ],
        "past": [
            {
                "fault": each.fault,
                "target": each.target,
                "began_at_s": since_start(each.start_ns),
                "lasted_for_s": _seconds(each.end_ns - each.start_ns),
                "effect": each.effect,
                "detail": each.detail,
            }
            for each in reversed(state.past)
        ],
        "load": dict(state.load),
        "report": state.report,
        "age_s": _seconds(now_ns - state.time_ns),
    }


def _seconds(nanoseconds: int) -> float:
    """Seconds, rounded to a tenth and at least 0, so that a file that was just written has no negative age."""
    return round(seconds_of_ns(max(0, nanoseconds)), 1)
