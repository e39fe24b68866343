"""The anomalies of time: what contradicts one machine's monotonic clock. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly("read-before-send", "a reader was handed a value before it was sent"),
    Anomaly("realtime-order", "a value comes before one that was acknowledged before it was sent"),
    Anomaly("watermark-regression", "the high watermark went back under one leader"),
    Anomaly("read-above-watermark", "a reader was handed what was not committed yet"),
)
