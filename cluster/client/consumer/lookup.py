"""OffsetLookup: offsets by timestamp that are wanted, which leader to ask for them, and what an answer means.

Owns what is asked, in flight or put off, for queries of a program and for positions alike. Does not own the request
(``cluster.client.offset_listing``) nor what a found offset is for. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import ClusterView
from cluster.client.offset_listing import ListedOffset
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: Found, but there is no such record.
NOTHING = ListedOffset(-1, -1, -1)


class Sought(NamedTuple):
    """A timestamp whose offset is wanted. ``number`` tells it from the same that was wanted before."""

    timestamp: int
    number: int


class _WantedOffsets:
    __slots__ = ("failures", "is_asked", "retry_ms", "sought", "topic_id")

    def __init__(self, sought: Sought) -> None:
        self.sought = sought
        self.is_asked = False
        self.failures = 0
        self.retry_ms = 0
        # Of the topic that is asked about.
        self.topic_id: UUID | None = None


@dataclass(slots=True)
class LookupAnswer:
    """What an answer brought: offsets, refusals that will hardly change, and topics whose metadata is old."""

    found: dict[TopicPartition, ListedOffset] = field(default_factory=dict)
    refused: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    stale_topics: set[str] = field(default_factory=set)


class OffsetLookup:
    """NOT thread-safe. Times are milliseconds of one monotonic clock."""

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self._backoff = backoff
        self._wanted: dict[TopicPartition, _WantedOffsets] = {}
        self._number = 0

    def __repr__(self) -> str:
        return f"OffsetLookup({ {key: wanted.sought.timestamp for key, wanted in self._wanted.items()} })"

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._wanted

    @property
    def outstanding(self) -> Collection[TopicPartition]:
        """What was not found yet."""
        return self._wanted.keys()

    def want(self, key: TopicPartition, timestamp: int) -> None:
        """Look for the offset of a timestamp, instead of another one that was wanted before."""
        self._number += 1
        self._wanted[key] = _WantedOffsets(Sought(timestamp, self._number))

    def forget(self, key: TopicPartition) -> None:
        """It is not wanted anymore; an answer that comes nevertheless is ignored."""
        self._wanted.pop(key, None)

    def due(self, view: ClusterView, now_ms: int) -> dict[int, dict[TopicPartition, Sought]]:
        """What to ask now, by leader; -1 for what has none that is known. Tell ``asked`` of what was sent."""
        due = {key: wanted for key, wanted in self._wanted.items() if not wanted.is_asked and wanted.retry_ms <= now_ms}
        for key, wanted in due.items():
            wanted.topic_id = view.topic_id(key[0])
        return view.by_leader({key: wanted.sought for key, wanted in due.items()})

    def topic_id(self, key: TopicPartition) -> UUID | None:
        """The id of the topic that was asked about for an offset that is wanted, as far as it is known."""
        return self._wanted[key].topic_id

    def retry_ms(self, now_ms: int) -> int | None:
        """When something that is put off is due; None if nothing is. What is due now waits for a node, not for time."""
        times = [each.retry_ms for each in self._wanted.values() if not each.is_asked and each.retry_ms > now_ms]
        return min(times, default=None)

    def asked(self, keys: Iterable[TopicPartition]) -> None:
        for key in keys:
            self._wanted[key].is_asked = True

    def abandoned(self) -> None:
        """No question that was asked will be answered."""
        for wanted in self._wanted.values():
            wanted.is_asked = False

    def failed(self, asked: Mapping[TopicPartition, Sought], now_ms: int) -> None:
        """The question got no answer."""
        for _, wanted in self._still(asked):
            self._put_off(wanted, now_ms)

    def answered(
        self,
        asked: Mapping[TopicPartition, Sought],
        answers: Mapping[TopicPartition, ListedOffset | ErrorCode],
        now_ms: int,
    ) -> LookupAnswer:
        """An answer to what was asked. What it left open is asked again after a pause; what was found is wanted until
        ``forget`` says that it is in its place, so that no exception can come between the two.
        """
        result = LookupAnswer()
        for key, wanted in self._still(asked):
            answer = answers.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)
            if isinstance(answer, ListedOffset):
                result.found[key] = answer
            elif answer is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                result.found[key] = NOTHING
            elif answer.retriable or answer is ErrorCode.UNKNOWN_SERVER_ERROR:
                # As Kafka, whatever the code: what is known may be of a topic that was created again meanwhile.
                result.stale_topics.add(key[0])
                self._put_off(wanted, now_ms)
            else:
                result.refused[key] = answer
                self._put_off(wanted, now_ms)
        return result

    def _still(self, asked: Mapping[TopicPartition, Sought]) -> list[tuple[TopicPartition, _WantedOffsets]]:
        """Those of ``asked`` that are wanted as they were."""
        found = [(key, self._wanted.get(key), sought) for key, sought in asked.items()]
        return [(key, wanted) for key, wanted, sought in found if wanted is not None and wanted.sought == sought]

    def _put_off(self, wanted: _WantedOffsets, now_ms: int) -> None:
        wanted.is_asked = False
        wanted.retry_ms = now_ms + self._backoff.delay_ms(wanted.failures)
        wanted.failures += 1


class OffsetQuery:
    """A program's question for some offsets: its lookup, and what has been found so far."""

    def __init__(self, wanted: Mapping[TopicPartition, int], backoff: ExponentialBackoff) -> None:
        self.lookup = OffsetLookup(backoff)
        self.found: dict[TopicPartition, ListedOffset] = {}
        self.refused: dict[TopicPartition, ErrorCode] = {}
        for key, timestamp in wanted.items():
            self.lookup.want(key, timestamp)

    def __repr__(self) -> str:
        return f"OffsetQuery({self.lookup!r}, {len(self.found)} found, {len(self.refused)} refused)"

    @property
    def is_done(self) -> bool:
        """Whether everything was found, or something refused."""
        return bool(self.refused) or not self.lookup.outstanding

    def take(
        self,
        asked: Mapping[TopicPartition, Sought],
        answers: Mapping[TopicPartition, ListedOffset | ErrorCode],
        now_ms: int,
    ) -> set[str]:
        """An answer came. Returns the topics whose metadata is old."""
        answer = self.lookup.answered(asked, answers, now_ms)
        self.found.update(answer.found)
        for key in answer.found:
            self.lookup.forget(key)
        self.refused.update(answer.refused)
        return answer.stale_topics
