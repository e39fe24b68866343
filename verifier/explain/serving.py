"""Sentences for the anomalies of serving (``verifier.anomalies.serving``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.evidence.units import ms_of_ns, seconds_of_ms
from verifier.explain.value_names import value_name
from verifier.facts import Found


def _stalled(found: Found) -> str:
    waited_s = seconds_of_ms(found.detail["waited_ms"])
    before = (
        "nothing was ever acknowledged in it" if found.detail["last_acked_ns"] is None else "it had taken some before"
    )
    return (
        f"it was written to, and nothing was acknowledged for {waited_s:.1f} s after the last heal, "
        f"with every replica in sync; {before}"
    )


def _under_min_isr(found: Found) -> str:
    detail = found.detail
    at = "" if found.offset is None else f" at offset {found.offset}"
    later = ms_of_ns(detail["sent_ns"] - detail["since_ns"])
    return (
        f"{value_name(detail['stream'], detail['sequence'])} was sent{at}, and acknowledged, {later:,.3f} ms or more "
        f"after broker {detail['broker']} had noted that in leader epoch {detail['leader_epoch']} only "
        f"{detail['isr']} is in sync, of {detail['wanted']} that must be"
    )


def _watermark_under_min_isr(found: Found) -> str:
    detail = found.detail
    later = ms_of_ns(detail["complete_ns"] - detail["since_ns"])
    return (
        f"session {detail['session']} of {detail['process']} was told of a high watermark {detail['high_watermark']} "
        f"{later:,.3f} ms or more after broker {detail['broker']} had noted that in leader epoch "
        f"{detail['leader_epoch']} only {detail['isr']} is in sync, of {detail['wanted']} that must be, and that no "
        f"more than what is below {detail['committed']} is committed"
    )


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "stalled": _stalled,
    "under-min-isr": _under_min_isr,
    "watermark-under-min-isr": _watermark_under_min_isr,
}
