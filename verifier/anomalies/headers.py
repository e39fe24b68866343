"""The anomalies of batch headers: what no correct cluster writes into them. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import LOG_ALONE, LOG_AND_CLOCK, Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        "split-brain",
        "one leader epoch and offset name two different batches",
        brings=("log-divergence", "sequence-gap", "sequence-duplicate"),
        needs=LOG_ALONE,
    ),
    Anomaly(
        "internal-divergence",
        "replicas of an internal topic, or of what a group writes, differ",
        {
            "different": "both have something there, and it is not the same",
            "missing": "a replica lacks what the most advanced one has",
            "extra": "a replica has what the most advanced one lacks",
        },
        # who led at the end is told by the bytes themselves
        needs=frozenset(("segments",)),
        asks_spark=False,
        about="topics of coordinators",
    ),
    Anomaly("epoch-regression", "a batch carries a lower leader epoch than one before it", needs=LOG_ALONE),
    Anomaly(
        "producer-epoch-regression",
        "a producer's batch carries a lower producer epoch than one before it",
        brings=("duplicate", "log-duplicate", "log-reorder", "nonmonotonic-send"),
        needs=LOG_ALONE,
        about="idempotent producers",
    ),
    Anomaly(
        "sequence-duplicate",
        "one sequence of a producer is at two offsets",
        brings=("sequence-gap",),
        needs=LOG_ALONE,
        about="idempotent producers",
    ),
    Anomaly(
        "sequence-gap",
        "a producer's batches do not follow each other",
        {
            "first": "the first batch of an epoch does not begin at sequence 0",
            "skipped": "sequences are missing between two batches",
            "backwards": "a batch goes back to sequences that were already used",
        },
        needs=LOG_ALONE,
        about="idempotent producers",
    ),
    Anomaly("unknown-producer-id", "a batch carries a producer id that no client was ever given", needs=LOG_ALONE),
    Anomaly(
        "timestamp-outside-run",
        "a batch's timestamp lies outside the run",
        {
            "before": "a timestamp lies before the run began",
            "after": "a timestamp lies after the end of the run",
        },
        needs=LOG_AND_CLOCK,
    ),
)
