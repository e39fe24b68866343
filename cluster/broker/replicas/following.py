"""Following: what a fetcher asks its leader, request by request, and which answers still count. Pure.

Owns the follower's half of a fetch session (KIP-227): its id and epoch, what the leader holds of us, what it must be
told; and which partitions pause. Does not own the connection, the timers or what an answer means (``Fetcher``).

A partition is told to the leader when it is news: it is followed again, its position has moved, or its pause is over.
Without a session (the leader declines, or none is open yet) every partition is news again after each answer. Two
requests may be on their way: then an answer to the first says nothing of a partition that the second has told again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from cluster.broker.replicas.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from cluster.broker.replicas.fetch_sessions import NO_SESSION
from cluster.broker.replicas.replica import Replica
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResponse, FetchResult
from cluster.replication.follower import FetchPosition
from cluster.seams.units import seconds_of_ms
from cluster.topic_partition import TopicPartition

#: How often the starts of logs are compared with what was noted: local retention moves one, and no answer says so.
SCAN_S = 5.0
#: The first pause after an error; each further one in a row is twice as long, up to ``replica.fetch.backoff.ms``. The
#: usual error is that the leader has not heard yet that it leads, and that takes it some milliseconds.
FIRST_PAUSE_MS = 20


class Followed:
    """One partition that is followed: what the leader was told of it last, and in which request."""

    __slots__ = ("failures", "log_start_offset", "number", "partition", "sent")

    def __init__(self, partition: Replica) -> None:
        self.partition = partition
        self.sent = FetchPosition(-1, -1, -1)
        self.log_start_offset = -1
        self.number = 0
        #: Errors in a row.
        self.failures = 0

    def __repr__(self) -> str:
        return f"<Followed {self.partition.key} told at {self.sent}>"


class QuestionKind(Enum):
    """What a request is to the session."""

    #: All partitions, asking for a session.
    FULL = "full"
    #: What has changed.
    INCREMENTAL = "incremental"
    #: Some partitions while a session is being opened, outside of it.
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Question:
    """One fetch to be sent. ``named`` are the partitions of a fetch that is not incremental."""

    number: int
    kind: QuestionKind
    session_id: int
    session_epoch: int
    wanted: list[FetchPartition]
    forgotten: list[TopicPartition] = field(default_factory=list)
    named: list[Followed] = field(default_factory=list)


class Following:
    """All partitions that are followed from one leader. Times are seconds of the loop."""

    def __init__(self, partition_max_bytes: int) -> None:
        self._partition_max_bytes = partition_max_bytes
        self._followed: dict[TopicPartition, Followed] = {}
        self._news: dict[TopicPartition, Followed] = {}
        #: Until when; infinity is until they are followed again.
        self._paused: dict[TopicPartition, float] = {}
        #: Whose place in the leader's log is asked for.
        self._asking: dict[TopicPartition, Followed] = {}
        #: What the leader's session holds, and what of it must go.
        self._held: dict[TopicPartition, Followed] = {}
        self._forgotten: dict[TopicPartition, None] = {}
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._is_opening = False
        self._number = 0
        self._rotation = 0
        self._scan_at_s = 0.0

    def __repr__(self) -> str:
        return f"<Following {len(self._followed)} partitions in session {self._session_id}.{self._epoch}>"

    def __len__(self) -> int:
        return len(self._followed)

    # Who is followed

    def add(self, partition: Replica) -> None:
        """Follow a partition from where it is; again if it was followed already, since its epoch changed."""
        key = partition.key
        self._paused.pop(key, None)
        self._asking.pop(key, None)
        self._followed[key] = self._news[key] = Followed(partition)

    def remove(self, key: TopicPartition) -> None:
        """Follow it no more. What is on its way for it will be ignored."""
        self._followed.pop(key, None)
        self._stop_asking(key)
        self._paused.pop(key, None)
        self._asking.pop(key, None)

    def clear(self) -> None:
        self._followed.clear()
        self._paused.clear()
        self.start_over()

    def is_current(self, followed: Followed) -> bool:
        """Whether it is followed still, and was not followed again since."""
        return self._followed.get(followed.partition.key) is followed

    def pause(self, followed: Followed, until_s: float) -> None:
        """Do not ask for it until then (infinity: until it is followed again)."""
        key = followed.partition.key
        if self.is_current(followed):
            self._stop_asking(key)
            self._asking.pop(key, None)
            self._paused[key] = until_s

    def back_off(self, followed: Followed, now_s: float, longest_ms: int) -> int:
        """Pause after an error, the longer the more of them came in a row; for how many milliseconds."""
        # Bounded before it is shifted: a leader may be away for days.
        pause_ms = min(FIRST_PAUSE_MS << min(followed.failures, 30), longest_ms)
        followed.failures += 1
        self.pause(followed, now_s + seconds_of_ms(pause_ms))
        return pause_ms

    def ask_range(self, followed: Followed) -> None:
        """Do not ask for its records until ``pause``: its place in the leader's log is asked for."""
        key = followed.partition.key
        self._stop_asking(key)
        self._asking[key] = followed

    def _stop_asking(self, key: TopicPartition) -> None:
        self._news.pop(key, None)
        if self._held.pop(key, None) is not None:
            self._forgotten[key] = None

    def start_over(self) -> None:
        """The connection or the session is gone, and nothing on its way will be answered."""
        self._session_id, self._epoch, self._is_opening = NO_SESSION, INITIAL_EPOCH, False
        self._held.clear()
        self._forgotten.clear()
        self._asking.clear()
        self._news = {key: followed for key, followed in self._followed.items() if key not in self._paused}

    # Requests

    def question(self, now_s: float, *, is_second: bool) -> Question | None:
        """What to ask now, None if there is nothing. ``is_second``: behind another that is not answered yet, which is
        worth it only for news."""
        self._resume(now_s)
        if is_second and not self._news:
            return None
        if self._session_id == NO_SESSION:
            return self._question_by_name()
        if not self._news and not self._held:
            return None
        self._scan(now_s)
        self._number += 1
        wanted = self._tell()
        self._held.update(self._news)
        forgotten = [key for key in self._forgotten if key not in self._news]
        question = Question(self._number, QuestionKind.INCREMENTAL, self._session_id, self._epoch, wanted, forgotten)
        self._news = {}
        self._forgotten.clear()
        self._epoch = next_epoch(self._epoch)
        return question

    def _question_by_name(self) -> Question | None:
        if not self._news:
            return None
        self._number += 1
        # Another partition goes first each time: the size limit of a response must not starve the last ones.
        named = list(self._news.values())
        self._rotation = (self._rotation + 1) % len(named)
        self._news = {each.partition.key: each for each in (*named[self._rotation :], *named[: self._rotation])}
        kind, epoch = (QuestionKind.ALONE, FINAL_EPOCH) if self._is_opening else (QuestionKind.FULL, INITIAL_EPOCH)
        question = Question(self._number, kind, NO_SESSION, epoch, self._tell(), named=list(self._news.values()))
        self._is_opening = True
        self._news = {}
        return question

    def _resume(self, now_s: float) -> None:
        for key in [key for key, until_s in self._paused.items() if until_s <= now_s]:
            del self._paused[key]
            self._news[key] = self._followed[key]

    def next_resume_s(self) -> float:
        """When the first pause is over; infinity if none has an end."""
        return min(self._paused.values(), default=math.inf)

    def _scan(self, now_s: float) -> None:
        if now_s >= self._scan_at_s:
            self._scan_at_s = now_s + SCAN_S
            for key, followed in self._held.items():
                if followed.log_start_offset != followed.partition.log.log_start_offset:
                    self._news[key] = followed

    def _tell(self) -> list[FetchPartition]:
        wanted = []
        for followed in self._news.values():
            asked = followed.partition.fetch_request(self._partition_max_bytes)
            followed.sent = FetchPosition(asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch)
            followed.number = self._number
            followed.log_start_offset = asked.log_start_offset
            wanted.append(asked)
        return wanted

    # Answers

    def answered(self, question: Question, response: FetchResponse) -> list[tuple[Followed, FetchResult]]:
        """The results that count: each for the partition that was asked for, from the place where it still is asked.

        Afterwards ``handled`` must be called for each. A result that is missing, from a fetch by name, is an error.
        """
        results = {(result.topic, result.partition): result for result in response.partitions}
        if question.kind is QuestionKind.INCREMENTAL:
            if response.error_code:
                # The leader has no such session: what it had of us is to be told again.
                self.start_over()
                return []
            # What the leader holds and we do not ask for anymore must go, or its errors would come again and again.
            self._forgotten.update(dict.fromkeys(key for key in results if key not in self._held))
            held = [(self._held[key], result) for key, result in results.items() if key in self._held]
            return [
                (followed, result)
                for followed, result in held
                if followed.number <= question.number and self.is_current(followed)
            ]
        if question.kind is QuestionKind.FULL:
            self._is_opening = False
            if response.session_id != NO_SESSION and not response.error_code:
                self._session_id = response.session_id
                self._epoch = next_epoch(INITIAL_EPOCH)
                self._held = {followed.partition.key: followed for followed in question.named}
                # Who is followed no more, or from another place, since it was asked.
                for key in [key for key in self._held if not self.is_current(self._held[key])]:
                    if key in self._followed:
                        del self._held[key]
                    else:
                        self._stop_asking(key)
        return [
            (followed, results.get(followed.partition.key) or _missing(followed, response.error_code))
            for followed in question.named
            if self.is_current(followed)
        ]

    def handled(self, followed: Followed, result: FetchResult) -> None:
        """A result was applied. Unless its partition pauses now, tell the leader what it does not know: all that has
        moved, or may have."""
        key = followed.partition.key
        if not self.is_current(followed) or key in self._paused or key in self._asking or key in self._news:
            return
        is_quiet = result.error_code == ErrorCode.NONE and not result.records and result.diverging is None
        if key not in self._held or not is_quiet or self._has_moved(followed):
            self._news[key] = followed

    def _has_moved(self, followed: Followed) -> bool:
        partition = followed.partition
        return partition.position() != followed.sent or partition.log.log_start_offset != followed.log_start_offset


def _missing(followed: Followed, error_code: int) -> FetchResult:
    return FetchResult(*followed.partition.key, error_code or ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)
