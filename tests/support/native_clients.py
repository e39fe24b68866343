"""What tests of our own clients against brokers of ours do again and again.

Owns new topics and reading so many records. The cluster, and an ``Admin`` of it, are fixtures of ``tests/integration``.
"""

from __future__ import annotations

import uuid

from cluster.client import Admin, Consumer, ConsumerRecord, NewTopic
from tests.support.kafka_clients import REPLICAS, wait_for


def new_topic(admin: Admin, partitions: int = 1, **configs: str) -> str:
    """The name of a new topic; its configs are spelled with underscores."""
    name = f"native-{uuid.uuid4().hex[:8]}"
    spelled = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, partitions, REPLICAS, spelled)])
    return name


def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """At least so many records."""
    found: list[ConsumerRecord] = []
    wait_for(lambda: found.extend(consumer.poll(0.5)) or len(found) >= count, f"{count} records")
    return found
