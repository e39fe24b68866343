"""The anomalies of serving: what a cluster must take, and what it must not. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import IN_SYNC, Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        "stalled",
        "a partition takes no writes although everything is healed and in sync",
        needs=frozenset(("histories",)),
        asks_spark=False,
    ),
    Anomaly(
        "under-min-isr",
        "a write was acknowledged with acks=all while fewer than min.insync.replicas replicas were in sync",
        needs=IN_SYNC,
        asks_spark=False,
        about="acks=all",
    ),
    Anomaly(
        "watermark-under-min-isr",
        "the high watermark moved while fewer than min.insync.replicas replicas were in sync",
        needs=IN_SYNC,
        asks_spark=False,
    ),
)
