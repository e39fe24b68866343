"""Offsets of one membership: when they are committed and fetched, and by whom."""

from __future__ import annotations

import pytest

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.group.group_errors import (
    CommitFailed,
    FencedInstanceId,
    GroupError,
    RebalanceInProgress,
    RetriableCommitFailed,
)
from cluster.client.consumer.group.group_requests import (
    CommitOffsets,
    FetchOffsets,
    LeaveGroup,
)
from cluster.client.consumer.group.membership_values import (
    PrepareJoin,
)
from cluster.client.consumer.group.offset_calls import CommitCall, FetchCall
from cluster.client.consumer.results import PartitionError
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.consumer.group.membership_setting import BACKOFF_MS, GONE, Setting

KEY = ("t", 0)


# Offsets


def commit(setting: Setting, *, is_retried: bool = True) -> CommitCall:
    call = CommitCall({KEY: OffsetAndMetadata(5)}, float("inf"), is_retried=is_retried)
    setting.core.offsets.add(call)
    return call


@pytest.mark.parametrize("code", [*GONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
@pytest.mark.parametrize("is_retried", [True, False])
def test_a_commit_that_may_succeed_later(code: ErrorCode, is_retried: bool):
    """One that is waited for is sent again; another one is an error at once: a later commit may have overtaken it."""
    setting = Setting()
    setting.settle()
    call = commit(setting, is_retried=is_retried)
    setting.answer(setting.only(CommitOffsets), partitions={KEY: code})
    assert call.is_done is not is_retried
    if not is_retried:
        assert isinstance(call.error, RetriableCommitFailed)
        return
    setting.now_ms += BACKOFF_MS
    if code in GONE:
        setting.find()
    setting.answer(setting.only(CommitOffsets))
    assert call.is_done and call.error is None


@pytest.mark.parametrize(
    ("code", "kind", "is_out"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgress, False),
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailed, True),
        (ErrorCode.ILLEGAL_GENERATION, CommitFailed, True),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceId, True),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, GroupError, None),
        (ErrorCode.INVALID_COMMIT_OFFSET_SIZE, GroupError, None),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupError, None),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, GroupError, None),
    ],
)
def test_a_commit_that_is_refused(code: ErrorCode, kind: type, is_out: bool | None):
    """The call ends; what it says about the membership has its consequences there."""
    setting = Setting("a")
    setting.settle()
    call = commit(setting)
    setting.answer(setting.only(CommitOffsets), partitions={KEY: code})
    assert call.is_done and isinstance(call.error, kind) and call.error.error_code is code
    step = setting.membership.next_step
    assert step == (None if is_out is None else PrepareJoin(setting.membership.generation, is_out))


def test_only_a_member_with_an_assignment_commits():
    """Not one that joins, nor one that is out; a consumer that is no member commits without a generation."""
    setting = Setting()
    call = commit(setting)
    setting.find()
    sent = setting.only(CommitOffsets)
    assert isinstance(sent, CommitOffsets) and sent.generation.is_lost and not call.is_done
    joining = Setting()
    joining.subscribe()
    assert isinstance(commit(joining).error, RebalanceInProgress)
    out = Setting()
    out.settle()
    out.membership.reset("out")
    assert isinstance(commit(out).error, CommitFailed)


def test_what_a_member_read_is_never_committed_by_a_stranger():
    """A commit whose answer is lost is not repeated without a generation after the member has left."""
    setting = Setting()
    setting.settle()
    call = commit(setting)
    setting.answer(setting.only(CommitOffsets), partitions={KEY: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
    setting.membership.unsubscribe("gone")
    setting.now_ms += BACKOFF_MS
    (leave,) = setting.tick()
    assert isinstance(leave, LeaveGroup) and isinstance(call.error, CommitFailed)


@pytest.mark.parametrize("code", [*GONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT])
def test_committed_offsets_are_awaited(code: ErrorCode):
    """Until the coordinator is there, and the outcome of transactions is known (KIP-447)."""
    setting = Setting()
    call = FetchCall([KEY, ("t", 1)], float("inf"))
    setting.core.offsets.add(call)
    setting.find()
    request = setting.only(FetchOffsets)
    if code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
        setting.answer(request, partitions={KEY: code})
    else:
        setting.answer(request, code)
    setting.now_ms += BACKOFF_MS
    if code in GONE:
        setting.find()
    found = {KEY: OffsetAndMetadata(4, 2, "x"), ("t", 1): None}
    setting.answer(setting.only(FetchOffsets), offsets=found)
    assert call.is_done and call.found == found and setting.tick() == []


def test_committed_offsets_that_are_refused():
    """The error names the partition, or the group."""
    for fields, kind in (({"partitions": {KEY: ErrorCode.TOPIC_AUTHORIZATION_FAILED}}, PartitionError),
                         ({"code": ErrorCode.GROUP_AUTHORIZATION_FAILED}, GroupError)):  # fmt: skip
        setting = Setting()
        call = FetchCall([KEY], float("inf"))
        setting.core.offsets.add(call)
        setting.find()
        setting.answer(setting.only(FetchOffsets), **fields)  # type: ignore[arg-type]
        assert call.is_done and isinstance(call.error, kind)
