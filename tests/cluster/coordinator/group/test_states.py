"""Every state of a group against every request: the answer, and the state that follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import PREDECESSORS, GroupState, IllegalGroupTransition, check_transition
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, T0, WAITS, World, protocols

A, B = "c-1", "c-2"


def absent() -> World:
    return World()


def empty() -> World:
    world = stable()
    world.leave(MemberIdentity(A), MemberIdentity(B))
    world.settle()
    return world


def preparing() -> World:
    """The leader has joined again, the other member has not."""
    world = stable()
    world.join(A)
    return world


def completing() -> World:
    """The other member waits for its assignment."""
    world = preparing()
    world.join(B)
    world.sync(B, 2)
    return world


def stable() -> World:
    world = World()
    assert world.form(None, None) == [A, B]
    world.commit(5, A, 1)
    world.settle()
    return world


def dead() -> World:
    """Its removal is being stored."""
    world = empty()
    world.coordinator.delete_group(world.waiter(), GROUP, world.now_ms)
    return world


STATES: dict[str, Callable[[], World]] = {
    "absent": absent,
    "Empty": empty,
    "Preparing": preparing,
    "Completing": completing,
    "Stable": stable,
    "Dead": dead,
}
ABBREVIATED = {"PreparingRebalance": "Preparing", "CompletingRebalance": "Completing"}
GENERATIONS = {"absent": 1, "Empty": 2, "Preparing": 1, "Completing": 2, "Stable": 1, "Dead": 2}


def told(world: World, waiter: int) -> str:
    world.settle()
    answer = world.answer(waiter)
    if answer is WAITS:
        return "waits"
    if isinstance(answer, dict):
        answer = answer[T0]
    error_code = getattr(answer, "error_code", answer)
    assert isinstance(error_code, ErrorCode)
    return error_code.name


def left(world: World, *members: MemberIdentity) -> str:
    answer = world.leave(*members)
    return (answer.members[0] if answer.members else answer).error_code.name  # type: ignore[no-any-return]


def deleted(world: World) -> str:
    waiter = world.waiter()
    world.do(world.coordinator.delete_group(waiter, GROUP, world.now_ms))
    return told(world, waiter)


def offsets_deleted(world: World, topic: str) -> str:
    waiter = world.waiter()
    world.do(world.coordinator.delete_offsets(waiter, GROUP, [(topic, 0)], world.now_ms))
    world.settle()
    answer = world.answers[waiter]
    return (answer.error_code or answer.partitions[(topic, 0)]).name  # type: ignore[no-any-return]


REQUESTS: dict[str, Callable[[World, int], str]] = {
    "join, new, before version 4": lambda w, _: told(w, w.join()),
    "join, new, version 4": lambda w, _: told(w, w.join(version=4)),
    "join, new, static": lambda w, _: told(w, w.join(instance="i", version=9)),
    "join, unknown id": lambda w, _: told(w, w.join("c-9")),
    "join, unknown instance": lambda w, _: told(w, w.join(B, instance="i")),
    "join, leader": lambda w, _: told(w, w.join(A)),
    "join, follower, unchanged": lambda w, _: told(w, w.join(B)),
    "join, follower, changed": lambda w, _: told(w, w.join(B, protocols=protocols("range", topic="u"))),
    "join, other protocol": lambda w, _: told(w, w.join(protocols=protocols("sticky"))),
    "join, other type": lambda w, _: told(w, w.join(protocol_type="connect")),
    "sync, follower": lambda w, g: told(w, w.sync(B, g)),
    "sync, leader": lambda w, g: told(w, w.sync(A, g)),
    "sync, old generation": lambda w, g: told(w, w.sync(B, g - 1)),
    "sync, other protocol": lambda w, g: told(w, w.sync(B, g, protocol_name="sticky")),
    "sync, unknown": lambda w, g: told(w, w.sync("c-9", g)),
    "heartbeat": lambda w, g: w.heartbeat(B, g).name,
    "heartbeat, old generation": lambda w, g: w.heartbeat(B, g - 1).name,
    "heartbeat, unknown": lambda w, g: w.heartbeat("c-9", g).name,
    "leave": lambda w, _: left(w, MemberIdentity(B)),
    "leave, unknown": lambda w, _: left(w, MemberIdentity("c-9")),
    "commit": lambda w, g: told(w, w.commit(6, B, g)),
    "commit, old generation": lambda w, g: told(w, w.commit(6, B, g - 1)),
    "commit, unknown": lambda w, g: told(w, w.commit(6, "c-9", g)),
    "commit, simple": lambda w, _: told(w, w.commit(6)),
    "transaction": lambda w, g: told(w, w.commit(6, B, g, producer_id=7)),
    "transaction, old generation": lambda w, g: told(w, w.commit(6, B, g - 1, producer_id=7)),
    "transaction, no member": lambda w, _: told(w, w.commit(6, producer_id=7)),
    "delete group": lambda w, _: deleted(w),
    "delete offsets, subscribed": lambda w, _: offsets_deleted(w, "t"),
    "delete offsets, other": lambda w, _: offsets_deleted(w, "u"),
}

#: A cell is the answer, and the state that follows if it is another one. ``.`` is success, ``~`` waits.
TABLE = """
request                     | absent           | Empty         | Preparing      | Completing    | Stable        | Dead
join, new, before version 4 | ~ > Preparing    | ~ > Preparing | ~              | ~ > Preparing | ~ > Preparing | away
join, new, version 4        | required > Empty | required      | required       | required      | required      | away
join, new, static           | ~ > Preparing    | ~ > Preparing | ~              | ~ > Preparing | ~ > Preparing | away
join, unknown id            | unknown          | unknown       | unknown        | unknown       | unknown       | away
join, unknown instance      | unknown          | unknown       | unknown        | unknown       | unknown       | away
join, leader                | unknown          | unknown       | ~              | .             | ~ > Preparing | away
join, follower, unchanged   | unknown          | unknown       | . > Completing | .             | .             | away
join, follower, changed     | unknown          | unknown       | . > Completing | ~ > Preparing | ~ > Preparing | away
join, other protocol        | ~ > Preparing    | ~ > Preparing | protocol       | protocol      | protocol      | away
join, other type            | ~ > Preparing    | ~ > Preparing | protocol       | protocol      | protocol      | away
sync, follower              | unknown          | unknown       | rebalance      | ~             | .             | away
sync, leader                | unknown          | unknown       | rebalance      | . > Stable    | .             | away
sync, old generation        | unknown          | unknown       | generation     | generation    | generation    | away
sync, other protocol        | unknown          | unknown       | protocol       | protocol      | protocol      | away
sync, unknown               | unknown          | unknown       | unknown        | unknown       | unknown       | away
heartbeat                   | unknown          | unknown       | rebalance      | .             | .             | away
heartbeat, old generation   | unknown          | unknown       | generation     | generation    | generation    | away
heartbeat, unknown          | unknown          | unknown       | unknown        | unknown       | unknown       | away
leave                       | unknown          | unknown       | . > Completing | . > Preparing | . > Preparing | away
leave, unknown              | unknown          | unknown       | unknown        | unknown       | unknown       | away
commit                      | generation       | unknown       | .              | rebalance     | .             | away
commit, old generation      | generation       | unknown       | generation     | generation    | generation    | away
commit, unknown             | generation       | unknown       | unknown        | unknown       | unknown       | away
commit, simple              | . > Empty        | .             | unknown        | unknown       | unknown       | away
transaction                 | unknown          | unknown       | .              | .             | .             | away
transaction, old generation | unknown          | unknown       | generation     | generation    | generation    | away
transaction, no member      | . > Empty        | .             | .              | .             | .             | away
delete group                | absent           | . > absent    | members        | members       | members       | away
delete offsets, subscribed  | absent           | .             | subscribed     | subscribed    | subscribed    | away
delete offsets, other       | absent           | .             | .              | .             | .             | away
"""
SHORT = {
    ".": "NONE",
    "~": "waits",
    "unknown": "UNKNOWN_MEMBER_ID",
    "generation": "ILLEGAL_GENERATION",
    "rebalance": "REBALANCE_IN_PROGRESS",
    "away": "COORDINATOR_NOT_AVAILABLE",
    "protocol": "INCONSISTENT_GROUP_PROTOCOL",
    "required": "MEMBER_ID_REQUIRED",
    "absent": "GROUP_ID_NOT_FOUND",
    "members": "NON_EMPTY_GROUP",
    "subscribed": "GROUP_SUBSCRIBED_TO_TOPIC",
}


def cells() -> list[tuple[str, str, str, str]]:
    """(request, state, answer, next state) of the table."""
    found = []
    for line in TABLE.strip().splitlines()[1:]:
        request, *columns = (cell.strip() for cell in line.split("|"))
        for state, cell in zip(STATES, columns, strict=True):
            answer, _, follows = cell.partition(" > ")
            found.append((request, state, SHORT[answer], follows or state))
    return found


def outcome(request: str, state: str) -> tuple[str, str]:
    world = STATES[state]()
    answer = REQUESTS[request](world, GENERATIONS[state])
    group = world.coordinator.group(GROUP)
    name = "absent" if group is None else group.state.value
    return answer, ABBREVIATED.get(name, name)


@pytest.mark.parametrize(("request_name", "state", "answer", "follows"), cells())
def test_every_state_and_request(request_name: str, state: str, answer: str, follows: str) -> None:
    """The answer and the next state are those of the table."""
    assert outcome(request_name, state) == (answer, follows)


def test_the_table_is_complete() -> None:
    """Each request has its row, each state its column."""
    assert [request for request, state, _, _ in cells() if state == "absent"] == list(REQUESTS)


@pytest.mark.parametrize("before", GroupState)
@pytest.mark.parametrize("after", GroupState)
def test_transitions_are_kafkas(before: GroupState, after: GroupState) -> None:
    """A group comes from the states that the reference names, and from no other."""
    legal = {
        GroupState.EMPTY: "PreparingRebalance",
        GroupState.PREPARING_REBALANCE: "Empty CompletingRebalance Stable",
        GroupState.COMPLETING_REBALANCE: "PreparingRebalance",
        GroupState.STABLE: "CompletingRebalance",
        GroupState.DEAD: "Empty PreparingRebalance CompletingRebalance Stable Dead",
    }[after]
    assert (before in PREDECESSORS[after]) == (before.value in legal.split())
    if before not in PREDECESSORS[after]:
        with pytest.raises(IllegalGroupTransition):
            check_transition(before, after)
