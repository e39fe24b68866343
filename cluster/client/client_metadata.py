"""What a client knows about the cluster, what it wants to know, and when to ask again. Pure.

Owns the topics in use, the merging of answers (leader epochs never go back, KIP-320), the ages and the back-off of
updates (Kafka's ``Metadata`` and ``ProducerMetadata``) and the bootstrap addresses. Does not own the request, the
choice of a broker (``cluster.client.nodes``) nor who waits for an update.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.protocol.errors import ErrorCode


class MetadataQuestion(NamedTuple):
    """What to ask a broker for. ``update`` wants it back with the answer; ``request_version`` is its to compare."""

    topics: tuple[str, ...]
    is_partial: bool
    request_version: int


class ClientMetadata:
    """NOT thread-safe: callers that share it must hold a lock. Times are milliseconds of one monotonic clock.

    Bootstrap brokers have the ids -1, -2, ...; they are forgotten with the first answer, and asked again when none of
    the brokers known since could be reached (``unreachable``; KIP-899, for which there is no key here, and what is
    known of topics is kept).
    """

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        backoff: ExponentialBackoff,
        *,
        max_age_ms: int,
        max_idle_ms: int | None = None,
    ) -> None:
        """``max_idle_ms`` is the age at which an unused topic is dropped; None keeps topics forever."""
        self._bootstrap = {
            -1 - index: BrokerAddress(-1 - index, host, port) for index, (host, port) in enumerate(bootstrap)
        }
        self._backoff = backoff
        self._max_age_ms = max_age_ms
        self._max_idle_ms = max_idle_ms
        self._view = ClusterView(None, -1, dict(self._bootstrap), {})
        self._version = 0
        # Topics in use and when each was last used; those that no answer has named yet.
        self._used_ms: dict[str, int] = {}
        self._new: set[str] = set()
        # What was told last of each, also while a topic is missing: epochs count within one topic id.
        self._epochs: dict[tuple[str, int], int] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._needs_full = True
        self._needs_partial = False
        self._request_version = 0
        self._failures = 0
        self._unreachable: set[int] = set()
        self._unchanged = 0
        self._expires_ms = 0
        self._allowed_ms = 0

    def __repr__(self) -> str:
        return (
            f"ClientMetadata(version {self._version}, {len(self._view.brokers)} brokers, {len(self._used_ms)} topics"
            f"{', update wanted' if self.is_update_requested else ''})"
        )

    @property
    def view(self) -> ClusterView:
        """What is known. A topic that was answered with an error is there with its code and without partitions.

        A leader may be a broker that is not (or no longer) among ``brokers``.
        """
        return self._view

    @property
    def version(self) -> int:
        """How many answers were taken in: anyone who waits for an update waits for a greater number."""
        return self._version

    @property
    def topics(self) -> Collection[str]:
        """The topics in use."""
        return self._used_ms.keys()

    @property
    def is_update_requested(self) -> bool:
        return self._needs_full or self._needs_partial

    def leader_of(self, topic: str, partition: int) -> BrokerAddress | None:
        """The broker that leads a partition, as far as it is known and alive."""
        found = self._view.partition(topic, partition)
        if found is None or not self._view.has_broker(found.leader):
            return None
        return self._view.brokers[found.leader]

    # What is wanted

    def use(self, topic: str, now_ms: int) -> None:
        """A topic is written or read now. One that was not in use is asked for at once, without back-off."""
        if topic not in self._used_ms:
            self._new.add(topic)
            self._needs_partial = True
            self._request_version += 1
            self._unchanged = 0
            if self._failures == 0:
                self._allowed_ms = min(self._allowed_ms, now_ms)
        self._used_ms[topic] = now_ms

    def retain(self, topics: Collection[str]) -> None:
        """Of the topics in use only these still are: no other is asked for, which could create it again, or kept."""
        dropped = self._used_ms.keys() - topics
        if not dropped:
            return
        for topic in dropped:
            del self._used_ms[topic]
        self._new -= dropped
        self._view = replace(
            self._view, topics={name: view for name, view in self._view.topics.items() if name in self._used_ms}
        )

    def request_update(self) -> int:
        """What is known turned out to be old: ask for all topics in use. Returns the version to wait beyond."""
        self._needs_full = True
        return self._version

    def request_update_for(self, topic: str) -> int:
        """The same for the sake of one topic, which is asked for alone as long as no answer has named it."""
        if topic in self._new:
            self._needs_partial = True
            return self._version
        return self.request_update()

    # When and what to ask

    def next_update_ms(self, now_ms: int) -> int:
        """Milliseconds until a question may and should be asked; 0 is now."""
        due_ms = now_ms if self.is_update_requested else self._expires_ms
        return max(0, due_ms - now_ms, self._allowed_ms - now_ms)

    def next_question(self, now_ms: int) -> MetadataQuestion:
        """The question to ask now: new topics alone, or all in use; those that no one used for long are dropped."""
        is_partial = bool(self._new) and not self._needs_full and now_ms < self._expires_ms
        if not is_partial:
            self._drop_idle(now_ms)
        topics = self._new if is_partial else self._used_ms.keys()
        return MetadataQuestion(tuple(sorted(topics)), is_partial, self._request_version)

    def _drop_idle(self, now_ms: int) -> None:
        if self._max_idle_ms is None:
            return
        limit_ms = now_ms - self._max_idle_ms
        for topic in [name for name, used_ms in self._used_ms.items() if used_ms <= limit_ms and name not in self._new]:
            del self._used_ms[topic]

    # Outcomes

    def failed(self, now_ms: int) -> None:
        """The question was not answered: the broker went away, took too long, or could not be understood."""
        self._allowed_ms = now_ms + self._backoff.delay_ms(self._failures)
        self._failures += 1
        self._unchanged = 0

    def update(self, question: MetadataQuestion, answer: ClusterView, now_ms: int) -> None:
        """The answer to a question. One without brokers (of a broker that has just started) says nothing."""
        if not answer.brokers:
            self.failed(now_ms)
            return
        was_due = now_ms >= self._expires_ms
        self._needs_partial = question.request_version < self._request_version
        if not question.is_partial:
            self._needs_full = False
            self._expires_ms = now_ms + self._max_age_ms
        self._failures = 0
        self._unreachable.clear()
        topics = self._merged(question.is_partial, answer.topics)
        # An answer that changes nothing did not help the caller: the next comes after a longer pause.
        self._unchanged = self._unchanged + 1 if topics == self._view.topics and not was_due else 0
        self._allowed_ms = now_ms + self._backoff.delay_ms(max(0, self._unchanged - 1))
        self._view = replace(answer, topics=topics)
        self._version += 1

    def unreachable(self, node_id: int) -> None:
        """A broker could not be connected to, or did not answer. When that holds for all that are known, the bootstrap
        addresses may be asked too, until the next answer.
        """
        self._unreachable.add(node_id)
        if self._view.brokers.keys() <= self._unreachable and not self._bootstrap.keys() <= self._view.brokers.keys():
            self._view = replace(self._view, brokers={**self._view.brokers, **self._bootstrap})
            self._needs_full = True

    def _merged(self, is_partial: bool, answered: Mapping[str, TopicView]) -> dict[str, TopicView]:
        """All topics after an answer; asks for an update where it says that it is not the last word."""
        known = self._view.topics
        merged = {name: topic for name, topic in known.items() if is_partial and name in self._used_ms}
        for name, topic in answered.items():
            self._new.discard(name)
            if name not in self._used_ms:
                continue
            if topic.error_code.is_invalid_metadata:
                self._needs_full = True
            merged[name] = self._newest(topic, known.get(name))
        self._epochs = {key: epoch for key, epoch in self._epochs.items() if key[0] in self._used_ms}
        self._topic_ids = {name: topic_id for name, topic_id in self._topic_ids.items() if name in self._used_ms}
        return merged

    def _newest(self, topic: TopicView, known: TopicView | None) -> TopicView:
        """``topic`` with each partition as of its greatest leader epoch: brokers learn of a new leader one by one."""
        if topic.topic_id is not None and self._topic_ids.setdefault(topic.name, topic.topic_id) != topic.topic_id:
            # It was deleted and created again, and its epochs started over.
            self._topic_ids[topic.name] = topic.topic_id
            self._epochs = {key: epoch for key, epoch in self._epochs.items() if key[0] != topic.name}
            known = None
        if topic.error_code is not ErrorCode.NONE:
            return topic
        partitions: dict[int, PartitionView] = {}
        for index, partition in topic.partitions.items():
            key = topic.name, index
            if partition.error_code.is_invalid_metadata:
                self._needs_full = True
            if 0 <= partition.leader_epoch < self._epochs.get(key, -1):
                older = None if known is None else known.partitions.get(index)
                if older is not None:
                    partitions[index] = older
                continue
            if partition.leader_epoch >= 0:
                self._epochs[key] = partition.leader_epoch
            else:
                self._epochs.pop(key, None)
            partitions[index] = partition
        return replace(topic, partitions=partitions)
