"""Describes each event that excuses an anomaly in one clause. Owns the clauses, but none of their figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifier.closing.wall_clock import clock
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import seconds_of_ns
from verifier.excuses.expectation import DISCONNECT, ELECTION, REFUSAL, RETRY, RETURNED, UNANSWERED


def event_text(excuse: str, event: Mapping[str, Any], run: RunModel) -> str:
    """The event as a clause, such as ``election of epoch 3 at offset 1200, about 12:00:03.1``. Times are UTC."""
    when = f"about {_clock(int(event['at_ns']), run)}"
    if excuse == ELECTION:
        return f"election of epoch {event['epoch']} at offset {event['start_offset']}, {when}"
    if excuse == DISCONNECT:
        return f"connection lost {when} ({event['text']})"
    if excuse == RETRY:
        return f"{event['text']} of sequences {event['first']} to {event['last']}, {when}"
    if excuse == REFUSAL:
        later = f"sequences {event['first']} to {event['last']} were refused as out of order, {when}"
        return f"{event['text']}, and then {later}"
    if excuse == UNANSWERED:
        return f"its client gave it up {when} ({event['text']}), and it may have arrived later"
    if excuse == RETURNED:
        return f"its leader was replaced, and led again from epoch {event['text']} on, {when}"
    return f"delivery timed out {when} ({event['text']})"


def _clock(monotonic_ns: int, run: RunModel) -> str:
    return clock(run, monotonic_ns) or f"{seconds_of_ns(monotonic_ns - run.started_ns):.1f} s after the start"
