"""What a producer's error says about a record: the verifier's own table. Pure.

A history says about each record ``ok``, ``fail`` or ``info``. ``fail`` is a strong word: a value that failed and is in
the log is an anomaly. It is believed only for an error after which nothing can have been stored. A test compares this
table with the client's own (``cluster.client.producer.outcomes``), so that neither is wrong alone.
"""

from __future__ import annotations

import re

#: The name with which a client's error begins: Kafka's, or librdkafka's own with an underscore.
_NAME = re.compile(r"_?[A-Z][A-Z0-9_]{4,}(?=: |$)")

#: What our own client says about a batch whose only attempt was answered: no request is on its way anymore.
ANSWERED = r"^(?!REQUEST_TIMED_OUT|NETWORK_EXCEPTION)[A-Z][A-Z0-9_]+: .* failed after 1 attempt\(s\)"

#: Answers that a leader gives before it appends anything, and that no client tries again (Kafka's ``Errors``). A
#: retriable error always leaves the outcome open.
REFUSALS = frozenset(
    {
        "MESSAGE_TOO_LARGE",
        "INVALID_TOPIC_EXCEPTION",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_REQUIRED_ACKS",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "INVALID_TIMESTAMP",
        "INVALID_REQUEST",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "UNSUPPORTED_VERSION",
        "POLICY_VIOLATION",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "UNKNOWN_PRODUCER_ID",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "INVALID_RECORD",
    }
)  # fmt: skip

#: Answers that ask for another attempt, and come before anything is appended (docs/produce-checks.md).
_REFUSED_FOR_NOW = frozenset(("NOT_ENOUGH_REPLICAS", "CORRUPT_MESSAGE", "THROTTLING_QUOTA_EXCEEDED"))
#: The same where nothing is waited for: with acks=all, who led may lose its office with the batch in its log.
_REFUSED_AT_ONCE = frozenset(("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"))


#: librdkafka's words for a batch that was refused since the one before it is missing. It has them from the broker, and
#: a history has them only of what is sent again.
OUT_OF_ORDER = "Broker: Broker received an out of order sequence number"
#: librdkafka's words for the end of an attempt after which its records may be in the log: no answer came, or the answer
#: of a leader that waits for its followers. A leader that loses its office meanwhile says that it does not lead.
MAY_BE_STORED = (
    "Local: Broker transport failure",
    "Local: Timed out",
    "Broker: Broker disconnected before response received",
    "Broker: Request timed out",
    "Broker: Message(s) written to insufficient number of in-sync replicas",
    "Broker: Not leader for partition",
)


def stored_nothing(client: str, acks: str) -> frozenset[str]:
    """The errors of a failed attempt after which its records are certainly not in the log.

    librdkafka's words for an answer and for what it made of it are not told apart: only one of them is certain.
    """
    if client == "confluent":
        return frozenset((OUT_OF_ORDER,))
    return REFUSALS | _REFUSED_FOR_NOW | (frozenset() if acks == "all" else _REFUSED_AT_ONCE)


def may_fail(client: str, name: str) -> bool:
    """Whether a history may say ``fail`` of a record that ended with this error.

    librdkafka does not tell whether a record was sent before the attempt that was refused, and sends again after some
    errors without counting a retry: its refusals leave the outcome open.
    """
    return name in REFUSALS and client != "confluent"


def error_name(text: str) -> str:
    """The name with which a client's error begins; empty if it has none."""
    found = _NAME.match(text)
    return "" if found is None else found[0]
