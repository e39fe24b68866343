"""Sentences for the anomalies of serving (``verifier.anomalies.serving``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.evidence.units import seconds_of_ms
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


SENTENCES: Mapping[str, Callable[[Found], str]] = {"stalled": _stalled}
