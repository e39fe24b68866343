"""MissingTopics: what a client uses and the cluster does not have: topics, and partitions beyond a topic's last.

Owns that each is warned about once, until it appears. Kafka's clients warn about topics alone, and with every answer.
Does not own that metadata are asked for again, nor how long a caller waits for that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from cluster.client.cluster_view import ClusterView
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: In the place of a partition's number: the whole topic.
_ALL = -1


class MissingTopics:
    """NOT thread-safe."""

    def __init__(self) -> None:
        self._told: set[TopicPartition] = set()

    def __repr__(self) -> str:
        return f"MissingTopics({sorted(self._told)})"

    def __bool__(self) -> bool:
        """Whether something was missing when ``look`` was called last."""
        return bool(self._told)

    def look(self, view: ClusterView, used: Iterable[TopicPartition]) -> None:
        """Warn about what is used and was not missing before. Of a topic without an answer nothing is known yet."""
        self._told = {(topic, number) for topic, number in self._told if _missing(view, topic, number) == number}
        for topic, number in used:
            found = _missing(view, topic, number)
            if found is None or (topic, found) in self._told:
                continue
            self._told.add((topic, found))
            if found == _ALL:
                logger.warning(
                    "topic %s does not exist (UNKNOWN_TOPIC_OR_PARTITION); asking again until it does: "
                    "create it, or check its name",
                    topic,
                )
            else:
                logger.warning(
                    "partition %s-%d does not exist: the topic has %d partition(s), counted from 0; "
                    "asking again until it does",
                    topic,
                    number,
                    _count(view, topic),
                )


def _missing(view: ClusterView, topic: str, number: int) -> int | None:
    """What is missing of a partition: itself, or all of its topic; None if nothing is, or no one has said so."""
    described = view.topics.get(topic)
    if described is not None and described.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _ALL
    return number if number >= _count(view, topic) > 0 else None


def _count(view: ClusterView, topic: str) -> int:
    """How many partitions a topic has; 0 if that is not known. A single one may be left out of what is known."""
    described = view.topics.get(topic)
    return 0 if described is None else max(described.partitions, default=-1) + 1
