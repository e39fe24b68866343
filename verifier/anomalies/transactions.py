"""The anomalies of transactions: what was decided, beside what the logs hold of it. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import Anomaly
from verifier.doubts import Evidence

#: The bytes of all replicas; who led at the end is told by them.
_BYTES: frozenset[Evidence] = frozenset(("segments",))

#: What clients saw of it.
_CLIENTS: frozenset[Evidence] = frozenset(("histories",))

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        "G1a",
        "a reader of committed records was handed a record of an aborted transaction",
        needs=_CLIENTS,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "precommitted-read",
        "a reader of committed records was handed a record before its commit was requested",
        needs=_CLIENTS,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "bank-total",
        "a reader of committed records was handed one side of a transfer without the other",
        needs=_CLIENTS,
        asks_spark=False,
        about="bank",
    ),
    Anomaly(
        "aborted-commit",
        "a transaction whose client was told that it is committed is aborted in a log",
        brings=("poll-skip", "int-poll-skip", "unseen", "bank-total", "wrong-end-offset"),
        needs=_BYTES | _CLIENTS,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "undecided-commit",
        "a client was told of a commit that no coordinator decided, or not for all of it",
        brings=("hanging-transaction",),
        needs=_BYTES | _CLIENTS,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "G1c", "transactions read from each other in a cycle", needs=_CLIENTS, asks_spark=False, about="transactions"
    ),
    Anomaly(
        "G0",
        "transactions wrote over each other in a cycle, against their order",
        needs=_CLIENTS,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "torn-transaction",
        "a transaction is committed in one partition, and aborted or missing in another",
        brings=("marker-audit", "hanging-transaction"),
        needs=_BYTES,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "marker-audit",
        "the markers in the logs are not those that the coordinators decided",
        {
            "missing": "a decided transaction has no marker in one of its partitions",
            "stray": "a marker ends what no coordinator had decided",
            "opposite": "a marker says COMMIT where ABORT was decided, or the reverse",
            "decisions": "one transaction was decided twice, and differently",
            "former-epoch": "a COMMIT ends what its producer began in an earlier epoch",
            "former-coordinator": "a marker is of a coordinator that a later one had replaced",
        },
        brings=("hanging-transaction",),
        needs=_BYTES,
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "hanging-transaction",
        "a transaction is open at the end of a log, and nothing will end it",
        needs=_BYTES | {"clock"},
        asks_spark=False,
        about="transactions",
    ),
    Anomaly(
        "zombie-write",
        "a transaction was written to under a producer epoch that was over",
        brings=("producer-epoch-regression", "marker-audit"),
        needs=_BYTES,
        asks_spark=False,
        about="transactions",
    ),
)
