"""Members against the real coordinator (schedules from seeds), and bugs that the model must find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from cluster.client.consumer.assignors.catalogue import ASSIGNORS
from cluster.client.consumer.group import membership_answers
from cluster.client.consumer.group.commits import Commits
from cluster.client.consumer.group.membership_values import PrepareJoin
from cluster.client.consumer.group.participation import Participation
from cluster.client.consumer.positions import Positions
from tests.cluster.client.consumer.group.model_group import ModelGroup, Violation

GATE_SCHEDULES = 100
FULL_SCHEDULES = 5_000
#: Within how many schedules a planted bug must be found.
PATIENCE = 300


def play(seed: int) -> None:
    try:
        ModelGroup(seed).run()
    except Violation as violation:
        raise Violation(f"schedule {seed}: {violation}") from violation


def test_members_share_partitions() -> None:
    """No two members of a generation read one partition, a cooperative one keeps what stays, no record is passed over;
    whatever fails, and with every assignor. In the end each partition has its reader.
    """
    for seed in range(GATE_SCHEDULES):
        play(seed)


@pytest.mark.full
@pytest.mark.timeout(7_200)
def test_members_share_partitions_in_many_schedules() -> None:
    """The same as in the gate, in 5,000 schedules."""
    for seed in range(FULL_SCHEDULES):
        play(seed)


def keeps_what_it_had(patch: pytest.MonkeyPatch) -> None:
    """An eager member joins without having given anything away."""
    prepare = Participation._prepare

    def prepared(self: Participation, step: PrepareJoin) -> bool:
        owned = list(self._positions.assignment.assigned)
        done = prepare(self, step)
        self._positions.assign(owned, from_committed=True)
        return done

    patch.setattr(Participation, "_prepare", prepared)


def gives_one_to_all(patch: pytest.MonkeyPatch) -> None:
    """A leader whose assignor gives the first partition to every member."""
    divide = ASSIGNORS["range"]

    def wrong(counts: Any, subscribers: Sequence[Any]) -> Any:
        divided = divide(counts, subscribers)
        first = next((key for partitions in divided.values() for key in partitions), None)
        if first is not None:
            for each in subscribers:
                if each.wants(first[0]) and first not in divided[each.member_id]:
                    divided[each.member_id].append(first)
        return divided

    patch.setitem(ASSIGNORS, "range", wrong)


def moves_at_once(patch: pytest.MonkeyPatch) -> None:
    """A cooperative leader that gives a member what another one still reads."""
    patch.setitem(ASSIGNORS, "cooperative-sticky", ASSIGNORS["roundrobin"])


def does_not_join_again(patch: pytest.MonkeyPatch) -> None:
    """What a cooperative member has given away is never given to another one."""
    rejoin = Participation._rejoin

    def sometimes(self: Participation, reason: str) -> None:
        if "revoked" not in reason:
            rejoin(self, reason)

    patch.setattr(Participation, "_rejoin", sometimes)


def does_not_hear_that_it_is_out(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat that is refused changes nothing."""
    patch.setattr(membership_answers, "_heartbeat", lambda membership, code, now_ms: membership.retry_heartbeat(now_ms))


def commits_too_much(patch: pytest.MonkeyPatch) -> None:
    """The offset of a record that was not returned yet."""
    consumed = Commits.consumed

    def beyond(self: Commits) -> Any:
        return {key: each._replace(offset=each.offset + 1) for key, each in consumed(self).items()}

    patch.setattr(Commits, "consumed", beyond)


def starts_over(patch: pytest.MonkeyPatch) -> None:
    """A cooperative rebalance that assigns everything from scratch, as an eager one does."""
    assign = Positions.assign

    def from_scratch(self: Positions, keys: Iterable[tuple[str, int]], *, from_committed: bool = False) -> None:
        wanted = list(keys)
        assign(self, [], from_committed=from_committed)
        assign(self, wanted, from_committed=from_committed)

    patch.setattr(Positions, "assign", from_scratch)


def forgets_a_wish(patch: pytest.MonkeyPatch) -> None:
    """A reason to join again that comes while the member joins is not remembered by anyone."""
    patch.setattr(Participation, "_watch", lambda self: None)


@pytest.mark.parametrize(
    "plant",
    [
        keeps_what_it_had,
        gives_one_to_all,
        moves_at_once,
        does_not_join_again,
        does_not_hear_that_it_is_out,
        commits_too_much,
        starts_over,
        forgets_a_wish,
    ],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, plant: Any) -> None:
    """The model finds each planted bug: it is able to fail."""
    plant(monkeypatch)

    def search() -> None:
        for seed in range(PATIENCE):
            play(seed)

    with pytest.raises(Violation):
        search()
