"""What a group's refusal looks like to a program: Kafka's exceptions of consumer groups.

Owns the exceptions and the texts of the codes. Does not own when one is raised.
"""

from __future__ import annotations

from cluster.client.consumer.results import ConsumerError
from cluster.protocol.errors import ErrorCode


class GroupError(ConsumerError):
    """The coordinator refuses the member, or what it asks, and asking again does not change that."""


class CommitFailed(GroupError):
    """The group has assigned the partitions to other members: nothing was committed (Kafka's CommitFailedException)."""

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(
            error_code,
            "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
            "assignment; it is likely that the consumer was kicked out of the group: call poll() more often, or raise "
            "max.poll.interval.ms or lower max.poll.records",
        )


class RebalanceInProgress(GroupError):
    """Nothing was committed: which partitions the member will have is not known yet. Poll, and commit after that."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.REBALANCE_IN_PROGRESS,
            "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto partition "
            "assignment: poll() completes the rebalance, and the commit can be retried then",
        )


class RetriableCommitFailed(GroupError):
    """Whether it is committed is not known, and the same may succeed now (Kafka's RetriableCommitFailedException)."""

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(error_code, f"Offset commit failed with a retriable error: {error_code.name}; commit again")


class FencedInstanceId(GroupError):
    """Another consumer has joined with the same group.instance.id: this one cannot continue."""

    def __init__(self, group_instance_id: str | None) -> None:
        super().__init__(
            ErrorCode.FENCED_INSTANCE_ID,
            f"The consumer with group.instance.id {group_instance_id} was replaced by another one with the same: close "
            "this one, and give each its own",
        )


class ListenerFailed(GroupError):
    """The program's rebalance listener has raised ``__cause__``; the rebalance itself is done."""

    def __init__(self, method: str, cause: Exception) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, f"User rebalance callback {method} throws an error: {cause!r}")


_TEXTS = {
    ErrorCode.INVALID_SESSION_TIMEOUT: "session.timeout.ms must be between the brokers' group.min.session.timeout.ms "
    "and group.max.session.timeout.ms",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the other members support none of this one's "
    "partition.assignment.strategy, or the group is not one of consumers",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members, or takes as much memory, as the broker allows",
    ErrorCode.INVALID_GROUP_ID: "the broker does not accept this group.id",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this client may not use the group",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata of an offset are longer than offset.metadata.max.bytes",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "the commit is larger than the broker takes",
    ErrorCode.UNSUPPORTED_VERSION: "the broker serves no version of the request that this client knows",
}


def group_error(code: ErrorCode, group_id: str, doing: str, group_instance_id: str | None = None) -> GroupError:
    """The error of a code that a retry does not help."""
    if code is ErrorCode.FENCED_INSTANCE_ID:
        return FencedInstanceId(group_instance_id)
    reason = f": {_TEXTS[code]}" if code in _TEXTS else ""
    return GroupError(code, f"{code.name} while {doing} group {group_id}{reason}")
