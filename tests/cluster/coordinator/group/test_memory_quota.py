"""gapless.groups.max.bytes: one client's groups leave room for those of others, and for groups that are in use."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupDecision, GroupSettings
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.invariants import validate
from cluster.coordinator.group.loading import LoadedBatch
from cluster.coordinator.group.requests import CommitRequest, JoinRequest, MemberIdentity, OffsetToCommit
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import SESSION_MS, protocols

MOST = 1_600_000
SIXTEENTH = MOST // 16
ATTACKER, VICTIM = "/10.0.0.66", "/10.0.0.1"


class Crowd:
    """One coordinator of all groups; every append is stored at once."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.log: list[LoadedBatch] = []
        self._epoch = self._ids = 0
        settings = GroupSettings(
            offsets_topic_num_partitions=1, groups_max_bytes=MOST, group_initial_rebalance_delay_ms=0
        )
        self.coordinator = GroupCoordinator(settings, self._new_member_id)
        self.elect()

    def _new_member_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    def elect(self) -> None:
        self._epoch += 1
        loader = self.coordinator.elected(0, self._epoch)
        assert loader is not None
        for batch in self.log:
            loader.feed(batch)
        self._do(self.coordinator.loaded(loader, self.now_ms))

    def fail_over(self) -> None:
        self.coordinator.resigned(0, self.now_ms)
        self.elect()

    def _do(self, decision: GroupDecision) -> Any:
        """Carry it out; the answer."""
        answers = [each.answer for each in decision.answers]
        for append in decision.appends:
            self.log.append(LoadedBatch(len(self.log), tuple(append.records)))
            stored = self.coordinator.appended(append, ErrorCode.NONE, len(self.log) - 1, self.now_ms)
            answers += [each.answer for each in stored.answers]
        return answers[0] if answers else None

    def commit(self, host: str, group_id: str, topic: str = "t", *, size_bytes: int = 1000) -> ErrorCode:
        offsets = {(topic, 0): OffsetToCommit(1, "m" * size_bytes)}
        request = CommitRequest(group_id, MemberIdentity(""), offsets, client_host=host)
        answer: dict[Any, ErrorCode] = self._do(self.coordinator.commit(1, request, self.now_ms))
        return answer[topic, 0]

    def join(self, host: str, group_id: str, version: int = 3) -> ErrorCode:
        """NONE also for one that waits for the others."""
        request = JoinRequest(
            group_id, "", "consumer", protocols("range"), SESSION_MS, SESSION_MS, None, "c", host, version
        )
        answer = self._do(self.coordinator.join(1, request, self.now_ms))
        return ErrorCode.NONE if answer is None else answer.error_code

    def fill(self, host: str) -> int:
        """Make groups with offsets, and let each get more, until none can; how many there are."""
        made = 0
        while self.commit(host, f"{host} {made}") is ErrorCode.NONE:
            made += 1
        for number in range(made):
            for topic in ("u", "v"):
                self.commit(host, f"{host} {number}", topic)
        assert self.commit(host, f"{host} 0", "w") is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        assert self.join(host, "another") is ErrorCode.GROUP_MAX_SIZE_REACHED
        validate(self.coordinator)
        return made

    @property
    def taken_bytes(self) -> int:
        return self.coordinator.room.taken_bytes

    def group(self, group_id: str) -> Group | None:
        return self.coordinator.group(group_id)


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def test_one_host_with_very_many_groups_leaves_an_eighth_for_others(crowd: Crowd) -> None:
    """New groups, new members and new partitions of a host that has little. It cannot take all that is left either."""
    assert crowd.fill(ATTACKER) > 100
    assert 13 * SIXTEENTH < crowd.taken_bytes <= 14 * SIXTEENTH
    assert crowd.commit(VICTIM, "mine") is ErrorCode.NONE
    assert crowd.commit(VICTIM, "mine", "u") is ErrorCode.NONE
    assert crowd.join(VICTIM, "ours") is ErrorCode.NONE
    assert crowd.join(VICTIM, "ours") is ErrorCode.NONE
    crowd.fill(VICTIM)
    assert crowd.taken_bytes <= 15 * SIXTEENTH
    assert crowd.commit("/10.0.0.2", "theirs") is ErrorCode.NONE


def test_on_one_host_groups_that_are_in_use_still_grow(crowd: Crowd) -> None:
    """When there is no room for new groups, there is some for their new members and partitions."""
    assert crowd.join(ATTACKER, "with members") is ErrorCode.NONE
    assert crowd.commit(ATTACKER, "with offsets") is ErrorCode.NONE
    made = 0
    while crowd.join(ATTACKER, f"{made}", version=4) is ErrorCode.MEMBER_ID_REQUIRED:
        made += 1
    # What is left is too little for a group, not for a member.
    codes = [crowd.join(ATTACKER, f"{number}") for number in range(5)]
    assert codes[-1] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert 11 * SIXTEENTH < crowd.taken_bytes <= 12 * SIXTEENTH
    assert crowd.join(ATTACKER, "with members") is ErrorCode.NONE
    assert crowd.commit(ATTACKER, "with offsets", "u") is ErrorCode.NONE
    validate(crowd.coordinator)


def test_groups_that_were_loaded_count_for_whoever_uses_them(crowd: Crowd) -> None:
    """Of offsets alone the log does not say whose they are. They are kept in any case."""
    made = crowd.fill(ATTACKER)
    crowd.commit(VICTIM, "mine")
    before = crowd.taken_bytes
    crowd.fail_over()
    assert (crowd.taken_bytes, crowd.coordinator.room.of_hosts) == (before, {"": before})
    assert crowd.commit(VICTIM, "mine", "u") is ErrorCode.NONE
    mine = crowd.group("mine")
    assert mine is not None and crowd.coordinator.room.of_hosts[VICTIM] == mine.counted_bytes
    for number in range(made):
        crowd.commit(ATTACKER, f"{ATTACKER} {number}")
    assert crowd.coordinator.room.of_hosts.keys() == {ATTACKER, VICTIM}
    validate(crowd.coordinator)


def test_a_group_of_which_nothing_is_left_takes_nothing(crowd: Crowd) -> None:
    """Its members' ids were never used, or its only commit failed: no one waits for the next look at what expired."""
    assert crowd.join(VICTIM, "g", version=4) is ErrorCode.MEMBER_ID_REQUIRED
    group = crowd.group("g")
    assert group is not None and crowd.taken_bytes > 0
    ((name, due_ms),) = group.timers.items()
    crowd.coordinator.timer_fired(name, due_ms)
    assert crowd.group("g") is None and crowd.taken_bytes == 0
    request = CommitRequest("g", MemberIdentity(""), {("t", 0): OffsetToCommit(1)}, client_host=VICTIM)
    decision = crowd.coordinator.commit(1, request, crowd.now_ms)
    assert crowd.taken_bytes > 0
    crowd.coordinator.appended(decision.appends[0], ErrorCode.NOT_ENOUGH_REPLICAS, -1, crowd.now_ms)
    assert crowd.group("g") is None and crowd.taken_bytes == 0
    assert crowd.coordinator.room.of_hosts == {}
    validate(crowd.coordinator)
