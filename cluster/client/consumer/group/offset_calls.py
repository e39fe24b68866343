"""OffsetCalls: the commits and the questions for committed offsets that wait for the coordinator. Pure.

Owns their order, when they are sent and sent again, and what an answer means: Kafka's OffsetCommitResponseHandler and
OffsetFetchResponseHandler. Does not own membership, nor what a program commits.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.group.group_errors import (
    CommitFailed,
    RebalanceInProgress,
    RetriableCommitFailed,
    group_error,
)
from cluster.client.consumer.group.group_membership import GroupMembership
from cluster.client.consumer.group.group_requests import (
    NO_GENERATION,
    CommitOffsets,
    FetchOffsets,
    GroupAction,
    GroupAnswer,
    OffsetRequest,
    SendGroupRequest,
)
from cluster.client.consumer.group.membership_answers import COORDINATOR_IS_GONE
from cluster.client.consumer.results import ConsumerError, PartitionError
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition, partition_name

logger = logging.getLogger(__name__)

#: Codes of a commit after which the same commit may succeed.
_COMMIT_AGAIN = COORDINATOR_IS_GONE | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
_FETCH_AGAIN = COORDINATOR_IS_GONE | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT}
_GENERATION_IS_OVER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class OffsetCall:
    """One call of the program. ``error`` is None for one that succeeded, once it ``is_done``."""

    __slots__ = ("asked", "deadline_ms", "error", "failures", "is_done", "retry_ms")

    def __init__(self, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self.asked: OffsetRequest | None = None
        self.is_done = False
        self.error: ConsumerError | None = None
        self.failures = 0
        self.retry_ms = 0

    def __repr__(self) -> str:
        state = (repr(self.error) if self.error else "done") if self.is_done else f"{self.failures} failures"
        return f"{type(self).__name__}({state})"


class CommitCall(OffsetCall):
    """``is_retried``: a program waits, so that what may succeed is tried until the deadline. ``generation`` is that in
    which it was made: a member commits what it read as that member, or not at all.
    """

    __slots__ = ("generation", "is_retried", "offsets", "on_done")

    def __init__(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline_ms: float,
        *,
        is_retried: bool,
        on_done: Callable[[ConsumerError | None], object] | None = None,
    ) -> None:
        super().__init__(deadline_ms)
        self.offsets = dict(offsets)
        self.generation = NO_GENERATION
        self.is_retried = is_retried
        self.on_done = on_done


class FetchCall(OffsetCall):
    """``found`` has None for a partition of which nothing is committed."""

    __slots__ = ("found", "partitions")

    def __init__(self, partitions: Iterable[TopicPartition], deadline_ms: float) -> None:
        super().__init__(deadline_ms)
        self.partitions = tuple(partitions)
        self.found: dict[TopicPartition, OffsetAndMetadata | None] = {}


class OffsetCalls:
    """NOT thread-safe."""

    def __init__(self, membership: GroupMembership, backoff_ms: Callable[[int], int]) -> None:
        self._membership = membership
        self._backoff_ms = backoff_ms
        self._calls: list[OffsetCall] = []
        #: Commits with a callback that have ended, in this order; the program's thread tells them.
        self.ended: deque[CommitCall] = deque()

    def __repr__(self) -> str:
        return f"OffsetCalls({self._calls!r})"

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for the coordinator."""
        return not self._calls

    def add(self, call: OffsetCall) -> None:
        """The program asks for this."""
        if isinstance(call, FetchCall) and not call.partitions:
            self._end(call)
            return
        self._calls.append(call)
        if isinstance(call, CommitCall):
            self._name_member(call)

    def forget(self, call: OffsetCall) -> None:
        """No one waits for it anymore; what is in flight may still be carried out."""
        if call in self._calls:
            self._calls.remove(call)

    # What to do

    def expire(self, now_ms: int) -> None:
        """What was not answered in time is told so."""
        for call in [call for call in self._calls if call.deadline_ms <= now_ms]:
            self._end(call, RetriableCommitFailed(ErrorCode.REQUEST_TIMED_OUT))

    def tick(self, now_ms: int) -> list[GroupAction]:
        """What to send now, in the order in which the program asked."""
        actions: list[GroupAction] = []
        for call in list(self._calls):
            if call.asked is None and call.retry_ms <= now_ms and self._membership.search.node is not None:
                if isinstance(call, CommitCall) and call.failures and not self._name_member(call):
                    continue
                call.asked = self._request(call)
                actions.append(SendGroupRequest(self._membership.search.node, call.asked))
        return actions

    def _name_member(self, call: CommitCall) -> bool:
        """Who commits; ends the call if no coordinator would take it."""
        was_member = call.generation != NO_GENERATION
        generation = self._membership.committing
        if generation is None or (was_member and not self._membership.is_subscribed):
            is_rebalancing = self._membership.is_rebalancing
            error = RebalanceInProgress() if is_rebalancing else CommitFailed(ErrorCode.UNKNOWN_MEMBER_ID)
            self._end(call, error)
            return False
        call.generation = generation
        return True

    def wake_ms(self) -> int | None:
        """When there will be something to do, unless something happens before."""
        has_node = self._membership.search.node is not None
        times = [call.retry_ms for call in self._calls if has_node and call.asked is None]
        times += [int(call.deadline_ms) for call in self._calls if call.deadline_ms != float("inf")]
        return min(times, default=None)

    def _request(self, call: OffsetCall) -> OffsetRequest:
        settings = self._membership.settings
        if isinstance(call, CommitCall):
            instance = None if call.generation == NO_GENERATION else settings.group_instance_id
            return CommitOffsets(settings.group_id, call.generation, instance, call.offsets)
        return FetchOffsets(settings.group_id, call.partitions if isinstance(call, FetchCall) else ())

    # Outcomes

    def answered(self, request: OffsetRequest, answer: GroupAnswer, now_ms: int) -> None:
        """An answer came, or will not come; one that no one waits for is ignored."""
        call = next((call for call in self._calls if call.asked is request), None)
        if call is None:
            return
        call.asked = None
        if isinstance(call, CommitCall) and isinstance(request, CommitOffsets):
            self._committed(call, request, answer, now_ms)
        elif isinstance(call, FetchCall):
            self._fetched(call, answer, now_ms)

    def failed(self, error: ConsumerError) -> None:
        """There will be no coordinator: nothing is to wait for one."""
        for call in list(self._calls):
            self._end(call, error)

    def _committed(self, call: CommitCall, request: CommitOffsets, answer: GroupAnswer, now_ms: int) -> None:
        codes = [answer.error_code, *(answer.partitions.get(each, ErrorCode.NONE) for each in call.offsets)]
        code = _worst(codes)
        if code is ErrorCode.NONE:
            self._end(call)
        elif code in _COMMIT_AGAIN:
            self._again(call, code, now_ms)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._membership.request_rejoin("offset commit failed since group is already rebalancing")
            self._end(call, RebalanceInProgress())
        elif code in _GENERATION_IS_OVER or code is ErrorCode.FENCED_INSTANCE_ID:
            self._end(call, self._refused_member(request, code))
        else:
            settings = self._membership.settings
            at = next((key for key in call.offsets if answer.partitions.get(key) is code), None)
            doing = "committing offsets of" if at is None else f"committing the offset of {partition_name(at)} in"
            self._end(call, group_error(code, settings.group_id, doing))

    def _refused_member(self, request: CommitOffsets, code: ErrorCode) -> ConsumerError:
        membership = self._membership
        is_current = membership.is_subscribed and request.generation == membership.generation
        error: ConsumerError = RebalanceInProgress() if membership.is_rebalancing else CommitFailed(code)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            if is_current:
                error = group_error(
                    code, membership.settings.group_id, "committing to", membership.settings.group_instance_id
                )
                membership.reset("another consumer has taken the place of this static member")
                membership.fail(error)
        elif is_current:
            membership.reset("a commit was refused", keeps_member_id=code is ErrorCode.ILLEGAL_GENERATION)
        return error

    def _fetched(self, call: FetchCall, answer: GroupAnswer, now_ms: int) -> None:
        codes = [answer.error_code, *(answer.partitions.get(each, ErrorCode.NONE) for each in call.partitions)]
        again = next((code for code in codes if code in _FETCH_AGAIN), None)
        refused = next((code for code in codes if code is not ErrorCode.NONE and code not in _FETCH_AGAIN), None)
        if refused is not None:
            at = next((key for key in call.partitions if answer.partitions.get(key) is refused), None)
            doing = "asking for committed offsets of"
            error: ConsumerError = group_error(refused, self._membership.settings.group_id, doing)
            self._end(call, error if at is None else PartitionError(refused, at, "asking for the committed offset of"))
        elif again is not None:
            self._again(call, again, now_ms)
        else:
            call.found = {each: answer.offsets.get(each) for each in call.partitions}
            self._end(call)

    def _again(self, call: OffsetCall, code: ErrorCode, now_ms: int) -> None:
        if code in COORDINATOR_IS_GONE:
            self._membership.search.unknown(f"{type(call).__name__}: {code.name}", now_ms)
        if isinstance(call, CommitCall) and not call.is_retried:
            self._end(call, RetriableCommitFailed(code))
            return
        logger.debug("group %s: %r again: %s", self._membership.settings.group_id, call, code.name)
        call.retry_ms = now_ms + self._backoff_ms(call.failures)
        call.failures += 1

    def _end(self, call: OffsetCall, error: ConsumerError | None = None) -> None:
        call.error = error
        call.is_done = True
        self.forget(call)
        if isinstance(call, CommitCall) and call.on_done is not None:
            self.ended.append(call)


def _worst(codes: Iterable[ErrorCode]) -> ErrorCode:
    """The code that decides over all: one that is about the member, then a final one, then one that passes."""
    refused = [code for code in codes if code is not ErrorCode.NONE]
    about_all = _GENERATION_IS_OVER | {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.REBALANCE_IN_PROGRESS}
    ranked = sorted(refused, key=lambda code: (code not in about_all, code in _COMMIT_AGAIN))
    return ranked[0] if ranked else ErrorCode.NONE
