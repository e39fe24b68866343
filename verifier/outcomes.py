"""What a producer's error says of a record: the verifier's own table. Pure.

A history says of each record ``ok``, ``fail`` or ``info``. ``fail`` is a strong word: a value that failed and is in the
log is an anomaly. It is believed only for an error after which nothing can have been stored. A test compares this table
with the client's own (``cluster.client.producer.outcomes``), so that neither is wrong alone.
"""

from __future__ import annotations

import re

#: The name with which a client's error begins: Kafka's, or librdkafka's own with an underscore.
_NAME = re.compile(r"_?[A-Z][A-Z0-9_]{4,}(?=: |$)")

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
