"""Each invariant of a group coordinator, broken by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.coordinator.group import invariants
from cluster.coordinator.group.decisions import TimerKind, TimerName
from cluster.coordinator.group.states import GroupState
from tests.cluster.coordinator.group.world import GROUP, HOME, T0, World, protocols
from tests.support.invariants import is_named, raised, stated

A, I = "c-2", "i-1"  # noqa: E741


def world() -> World:
    """A Stable group of a static and a dynamic member, with an id that was handed out and an open transaction."""
    made = World()
    made.form("i", None)
    made.join(version=4)
    made.commit(5, producer_id=7)
    made.settle()
    return made


def preparing(made: World) -> None:
    made.group.state = GroupState.PREPARING_REBALANCE


def refile(made: World) -> None:
    made.coordinator.groups[HOME]["another"] = made.coordinator.groups[HOME].pop(GROUP)


def swap_members(made: World) -> None:
    members = made.group.members
    members[A], members[I] = members[I], members[A]


BREAKS: list[tuple[str, Callable[[World], object]]] = [
    ("filed-where-led", refile),
    ("filed-where-led", lambda made: made.coordinator.homes.clear()),
    ("filed-where-led", lambda made: setattr(made.coordinator.homes[HOME], "is_loading", True)),
    ("members-filed", swap_members),
    ("members-filed", lambda made: made.group.static_members.clear()),
    ("members-filed", lambda made: made.group.pending_members.add(A)),
    ("leader-is-member", lambda made: setattr(made.group, "leader", "c-9")),
    ("leader-is-member", lambda made: setattr(made.group, "leader", None)),
    ("members-fit-state", lambda made: setattr(made.group, "state", GroupState.EMPTY)),
    ("protocol-shared", lambda made: setattr(made.group.members[A], "protocols", protocols("own"))),
    ("protocol-shared", lambda made: setattr(made.group, "protocol_name", "own")),
    ("size-counted", lambda made: setattr(made.group.members[A], "client_id", "longer")),
    ("size-counted", lambda made: setattr(made.group.offsets, "placed_bytes", 0)),
    ("size-counted", lambda made: setattr(made.group.offsets, "in_flight_bytes", 1)),
    ("size-counted", lambda made: setattr(made.group.members[A], "assignment", b"longer")),
    ("room-counted", lambda made: setattr(made.coordinator.room, "taken_bytes", 0)),
    ("room-counted", lambda made: made.group.begin_storing({A: b"more"})),
    ("supporters-there", lambda made: made.group.supporters.add(protocols("own"))),
    ("waits-in-phase", lambda made: made.group.park_join(made.group.members[A], 99)),
    ("waits-in-phase", lambda made: setattr(made.group.members[A], "sync_waiter", 99)),
    ("waits-in-phase", lambda made: made.group.replacing.add(A)),
    ("sync-awaited", lambda made: made.group.pending_sync.add("c-9")),
    ("wait-ends", preparing),
    ("wait-ends", lambda made: setattr(made.group, "state", GroupState.COMPLETING_REBALANCE)),
    ("members-watched", lambda made: made.group.timers.pop(TimerName(GROUP, TimerKind.SESSION, A))),
    ("members-watched", lambda made: made.group.timers.pop(TimerName(GROUP, TimerKind.PENDING, "c-3"))),
    ("members-watched", lambda made: made.group.timers.update({TimerName(GROUP, TimerKind.JOIN): 1})),
    ("offsets-counted", lambda made: made.group.offsets.in_flight.update({T0: 0})),
    ("offsets-counted", lambda made: made.group.offsets.transactions[7].clear()),
    ("offsets-counted", lambda made: made.group.offsets.producers.clear()),
]


@pytest.mark.parametrize(("name", "break_it"), BREAKS)
def test_what_is_broken_is_named(name: str, break_it: Callable[[World], object]) -> None:
    """One line with the invariant's name and the values."""
    made = world()
    is_named(name, lambda: invariants.validate(made.coordinator), lambda: break_it(made))


def test_each_is_stated_checked_and_broken() -> None:
    """In words, in code, and by hand."""
    assert stated(invariants) == raised(invariants) == {name for name, _ in BREAKS}
