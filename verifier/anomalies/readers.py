"""The anomalies of readers: how one of them went from delivery to delivery. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import CLIENTS_AND_LOG, Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly("poll-skip", "a reader's next poll skipped something", brings=("unseen",), needs=CLIENTS_AND_LOG),
    Anomaly("int-poll-skip", "within one poll, a reader skipped something", brings=("unseen",), needs=CLIENTS_AND_LOG),
    Anomaly(
        "nonmonotonic-poll",
        "a reader's next poll began at or before the position it had reached",
        needs=CLIENTS_AND_LOG,
    ),
    Anomaly(
        "int-nonmonotonic-poll",
        "within one poll, the offsets of a partition went back or repeated",
        needs=CLIENTS_AND_LOG,
    ),
)
