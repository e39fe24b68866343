"""The anomalies of time: what contradicts one machine's monotonic clock. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import CLIENTS_AND_LOG, Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly("read-before-send", "a reader was handed a value before it was sent", needs=CLIENTS_AND_LOG),
    Anomaly(
        "realtime-order", "a value comes before one that was acknowledged before it was sent", needs=CLIENTS_AND_LOG
    ),
    Anomaly("watermark-regression", "the high watermark went back under one leader", needs=CLIENTS_AND_LOG),
    Anomaly("read-above-watermark", "a reader was handed what was not committed yet", needs=CLIENTS_AND_LOG),
    Anomaly(
        "wrong-end-offset",
        "a reader was told an end of a partition that it cannot have had yet",
        {
            "not-yet-sent": "below it is a value that was sent later",
            "undecided": "a reader of committed records was told an end beyond an open transaction",
        },
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="end that no election may take back",
    ),
)
