"""The anomalies of consumer groups: what members were handed and committed, beside the log. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import CLIENTS_AND_LOG, Anomaly

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        "double-assignment",
        "two members of a group had one partition in one generation",
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="consumer groups",
    ),
    Anomaly(
        "lost-offset-commit",
        "an offset that a group committed is not in the log of its coordinator",
        {
            "missing": "no record has it",
            "regressed": "the log ends with a lower one, which was committed before",
        },
        brings=("committed-offset-regression",),
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="consumer groups",
    ),
    Anomaly(
        "resume-position",
        "a member of a group began to read a partition beyond what the group had committed",
        {
            "skipped": "it passed over records after the committed offset",
            "reset": "nothing was committed, and it did not begin at the start of the log",
        },
        brings=("group-completeness",),
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="consumer groups",
    ),
    Anomaly(
        "committed-offset-regression",
        "the committed offset of a group went back",
        {
            "resumed": "a member began below what the group had committed",
            "stale-generation": "a lower offset was taken from a member whose generation had ended",
        },
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="consumer groups",
    ),
    Anomaly(
        "group-completeness",
        "a group committed past a record that none of its members was handed",
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="consumer groups",
    ),
    Anomaly(
        "pipeline-exactly-once",
        "what a group transformed is not exactly once in its output",
        {
            "missing": "the group committed past a record that is not in the output",
            "twice": "a record is in the output more than once, and more often than in the input",
            "ahead": "a record is in the output, and its input is not committed",
            "without-input": "a record is in the output, and no reader of committed records was owed it in the input",
        },
        needs=CLIENTS_AND_LOG,
        asks_spark=False,
        about="group with an output",
    ),
)
