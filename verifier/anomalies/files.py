"""The anomalies of files beside the log: indexes, checkpoints, snapshots and tails. Plain data."""

from __future__ import annotations

from dataclasses import replace

from verifier.anomalies.model import LOG_ALONE, Anomaly

_ANOMALIES = (
    Anomaly("torn-tail", "after a stop in good order a file ends in bytes that are no batch"),
    Anomaly(
        "checkpoint-mismatch",
        "a checkpoint of a replica contradicts its log",
        {
            "unreadable": "the file is not in its format",
            "missing": "the file is not there after a clean stop",
            "epochs": "leader-epoch-checkpoint has other epochs than the batches",
            "recovery-point": "the recovery point is not the end of a log that was stopped cleanly",
            "high-watermark": "the high watermark is beyond the log's end, or below the final leader's",
            "log-start": "the log start is beyond the log's end, or not the final leader's",
            "marker": "a broker that ended in good order left no mark of it",
        },
    ),
    Anomaly(
        "snapshot-mismatch",
        "a snapshot of producers is not what the log gives",
        {
            "unreadable": "the file is not in its format",
            "entry": "a producer's newest batch is another one in the log",
            "lacks": "a producer of the log is not in it",
            "stranger": "it has a producer of which the log has nothing",
            "beyond": "it is of an offset beyond the end of the log",
            "missing": "there is none at the end of a log that was stopped cleanly",
        },
    ),
    Anomaly(
        "index-mismatch",
        "an index does not fit the batches of its segment",
        {
            "size": "bytes at its end are no whole entry",
            "outside": "an entry points outside of its segment",
            "batch": "an offset entry does not point at its batch",
            "timestamp": "a time entry does not have its batch's newest timestamp",
            "order": "an entry does not ascend",
            "newest": "the time index of a closed segment ends before its newest timestamp",
            "missing": "the file is not there after a clean stop",
        },
    ),
)

ANOMALIES: tuple[Anomaly, ...] = tuple(replace(each, needs=LOG_ALONE) for each in _ANOMALIES)
