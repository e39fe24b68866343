"""The anomalies of files beside the log: indexes, checkpoints, snapshots and tails. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import LOG_ALONE, Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly("torn-tail", "after a clean stop, a file ends in bytes that are not a batch", needs=LOG_ALONE),
    Anomaly(
        "checkpoint-mismatch",
        "a checkpoint of a replica contradicts its log",
        {
            "unreadable": "the file is not in its format, or too large for it",
            "missing": "the file is not there after a clean stop",
            "epochs": "leader-epoch-checkpoint and the batches disagree about epochs",
            "recovery-point": "the recovery point is not the end of a log that was stopped cleanly",
            "high-watermark": "the high watermark is beyond the log's end, or below the final leader's",
            "log-start": "the log start is beyond the log's end, or not the final leader's",
            "marker": "a broker that stopped cleanly left no clean-shutdown file",
        },
        needs=LOG_ALONE,
    ),
    Anomaly(
        "snapshot-mismatch",
        "a producer snapshot does not match the log",
        {
            "unreadable": "the file is not in its format, or too large for it",
            "entry": "a producer's newest batch is a different one in the log",
            "lacks": "the snapshot lacks a producer that the log has",
            "stranger": "the snapshot has a producer that the log does not have",
            "beyond": "the snapshot's offset lies beyond the end of the log",
            "missing": "a log that was stopped cleanly has no snapshot at its end",
        },
        needs=LOG_ALONE,
    ),
    Anomaly(
        "aborted-index-audit",
        "an index of aborted transactions does not match the batches of its segment",
        needs=LOG_ALONE,
    ),
    Anomaly(
        "index-mismatch",
        "an index does not fit the batches of its segment",
        {
            "size": "the bytes at its end do not make a whole entry, or it is too large for an index",
            "outside": "an entry points outside of its segment",
            "batch": "an offset entry does not point at its batch",
            "timestamp": "a time entry does not have its batch's newest timestamp",
            "order": "an entry is not above the one before it",
            "newest": "the time index of a closed segment ends before its newest timestamp",
            "missing": "the file is not there after a clean stop",
        },
        needs=LOG_ALONE,
    ),
)
