"""Sentences for the anomalies of time (``verifier.anomalies.timing``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.evidence.units import ms_of_ns
from verifier.explain.value_names import value_name
from verifier.facts import Found


def _ms(nanoseconds: int) -> str:
    return f"{ms_of_ns(nanoseconds):,.3f} ms"


def _read_before_send(found: Found) -> str:
    early_ns = found.detail["sent_ns"] - found.detail["read_ns"]
    return (
        f"{value_name(found.stream, found.sequence)} at offset {found.offset} was handed to a reader "
        f"{_ms(early_ns)} before it was sent"
    )


def _realtime_order(found: Found) -> str:
    detail = found.detail
    later_ns = detail["invoke_ns"] - detail["acknowledged_ns"]
    other = value_name(detail["behind_stream"], detail["behind_sequence"])
    return (
        f"{value_name(found.stream, found.sequence)} is at offset {found.offset}, before {other} at "
        f"{detail['behind_offset']}, which had been acknowledged {_ms(later_ns)} before the first was sent"
    )


def _watermark_regression(found: Found) -> str:
    detail = found.detail
    return (
        f"{detail['process']} (session {detail['session']}) was told the high watermark {found.offset} after "
        f"{detail['before']}, both in leader epoch {detail['leader_epoch']}"
    )


def _read_above_watermark(found: Found) -> str:
    detail = found.detail
    return (
        f"{detail['process']} (session {detail['session']}) was handed offset {found.offset} when the high watermark "
        f"was {detail['high_watermark']}, in leader epoch {detail['leader_epoch']}"
    )


def _wrong_end_offset(found: Found) -> str:
    detail = found.detail
    told = f"{detail['reader']} (session {detail['session']}) was told that it ends at offset {found.offset}"
    if detail["later_ns"] is None:
        return f"{told}, where the transaction from offset {detail['below']} on had not ended"
    later = _ms(detail["later_ns"] - detail["told_ns"])
    if found.cause == "undecided":
        return f"{told}, {later} before anyone asked to commit what is at offset {detail['below']}"
    return f"{told}, {later} before what is at offset {detail['below']} was sent"


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "read-before-send": _read_before_send,
    "realtime-order": _realtime_order,
    "watermark-regression": _watermark_regression,
    "read-above-watermark": _read_above_watermark,
    "wrong-end-offset": _wrong_end_offset,
}
