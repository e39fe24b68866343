"""The cluster that benchmarks measure: real brokers without proxies, and its topics.

Owns the properties that benchmarks add and the creation of topics. Starting, killing and restarting brokers is the
integration tests' ``LocalCluster``.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.admin import AdminClient, NewTopic

#: For a broker by itself.
ALONE = {"min.insync.replicas": "1", "default.replication.factor": "1"}


def create_topics(bootstrap: str, topics: Sequence[NewTopic], timeout_s: float = 60.0) -> None:
    """Create topics and wait until the controller has answered. Raises ``KafkaException``."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": int(timeout_s * 1000)})
    answers = admin.create_topics(list(topics), request_timeout=timeout_s, operation_timeout=timeout_s)
    for answer in answers.values():
        answer.result(timeout_s)
