"""The anomalies of serving: what a cluster must do once everything is healed. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        "stalled",
        "a partition takes no writes although everything is healed and in sync",
        needs=frozenset(("histories",)),
        asks_spark=False,
    ),
)
