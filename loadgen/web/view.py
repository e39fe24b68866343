"""A moment of the run as a person reads it: for the page, and as the rows of Locust's table. Pure."""

from __future__ import annotations

from typing import Any

from verifier.evidence.live import LiveState

#: Locust's own table in the tab; its cells are plain text.
TAB = {"title": "Chaos", "key": "chaos"}
COLUMNS = [
    {"key": "what", "title": "What"},
    {"key": "value", "title": "Value"},
    {"key": "target", "title": "Target"},
    {"key": "when", "title": "When"},
    {"key": "effect", "title": "Effect"},
]
NOTHING_YET = "Nothing is known of the run yet."


def page(state: LiveState, now_ns: int) -> dict[str, Any]:
    """What the page shows; past faults with the newest first.

    Times are seconds: ``*_at_s`` since the run began, as on its stderr; ``*_for_s`` how long; ``age_s`` since the
    conductor wrote this.
    """

    def since_start(time_ns: int) -> float:
        return _seconds(time_ns - state.started_ns)

    return {
        "name": state.name,
        "seed": state.seed,
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


def rows(state: LiveState | None, now_ns: int) -> list[dict[str, Any]]:
    """The same as rows of ``COLUMNS``, for the tab. Locust sorts by ``name``, so that is a row's number."""
    if state is None:
        return _numbered([_row("phase", NOTHING_YET)])
    shown = page(state, now_ns)
    load = shown["load"]
    table = [
        _row("phase", shown["phase"], when=f"for {shown['phase_for_s']:.0f} s"),
        _row("acknowledged", f"{load.get('acked', 0):,}", effect=f"{load.get('acked_per_s', 0):,.0f} per second"),
        _row("unknown", f"{load.get('unknown', 0):,}"),
        _row("failed", f"{load.get('failed', 0):,}"),
        _row("read", f"{load.get('read', 0):,}"),
    ]
    for each in shown["active"]:
        when = f"since {each['began_at_s']:.1f} s, for {each['active_for_s']:.0f} s"
        effect = "healed, recovering" if each["healed"] else ""
        table.append(_row("active fault", each["fault"], each["target"], when, effect))
    if not shown["active"]:
        table.append(_row("active fault", "none"))
    for each in shown["past"]:
        when = f"at {each['began_at_s']:.1f} s, for {each['lasted_for_s']:.1f} s"
        effect = f"{each['effect']}; {each['detail']}" if each["detail"] else each["effect"]
        table.append(_row("past fault", each["fault"], each["target"], when, effect))
    table.append(_row("the same, larger", "/gapless/", "linked under Download Data"))
    return _numbered(table)


def _seconds(nanoseconds: int) -> float:
    """To a tenth; a file that is read while the clock stands at its very time has no negative age."""
    return round(max(0, nanoseconds) / 1e9, 1)


def _row(what: str, value: str, target: str = "", when: str = "", effect: str = "") -> dict[str, Any]:
    return {"what": what, "value": value, "target": target, "when": when, "effect": effect}


def _numbered(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": number, **row} for number, row in enumerate(table)]
