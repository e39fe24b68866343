"""Read lag in the form of ``verdict.json``, in ms. Pure; decides nothing. ``verifier.figures.lag`` measures it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verifier.evidence.units import ms_of_ns
from verifier.facts import ReadLag


def figures(lags: Sequence[ReadLag]) -> dict[str, Any]:
    """The lag over all values, and under ``partitions`` the lag in each partition; empty if nothing was measured."""
    whole = [_figures(lag) for lag in lags if lag.topic is None]
    partitions = {f"{lag.topic}-{lag.partition}": _figures(lag) for lag in lags if lag.topic is not None}
    return {**whole[0], "partitions": partitions} if whole else {}


def _figures(lag: ReadLag) -> dict[str, Any]:
    return {
        "p50_ms": _ms(lag.p50_ns),
        "p99_ms": _ms(lag.p99_ns),
        "worst_ms": _ms(lag.worst_ns),
        "worst_stream": lag.stream,
        "worst_sequence": lag.sequence,
        "unread": lag.unread,
    }


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(ms_of_ns(nanoseconds), 1)
