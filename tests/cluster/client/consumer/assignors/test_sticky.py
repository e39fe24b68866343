"""``sticky`` and ``cooperative-sticky``: balance, few moves, and nothing moved before it was given away."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.consumer.assignors.claims import Claim, settle_claims
from cluster.client.consumer.assignors.cooperative import assign_cooperative, claim_of
from cluster.client.consumer.assignors.cooperative import user_data as cooperative_user_data
from cluster.client.consumer.assignors.movements import Movements
from cluster.client.consumer.assignors.sticky import assign_sticky, read_user_data, user_data
from cluster.client.consumer.assignors.subscribers import Divided, Subscriber
from cluster.protocol.consumer_protocol import Subscription
from cluster.topic_partition import TopicPartition
from tests.cluster.client.consumer.assignors.groups import (
    COUNTS,
    GROUPS,
    UNIFORM,
    all_wanted,
    check_once,
    cooperative,
    eager,
    partitions,
)

Wanted = dict[str, list[str]]
Counts = dict[str, int]


def sizes(divided: Divided) -> list[int]:
    return sorted(map(len, divided.values()))


def owner_of(divided: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
    return {partition: member_id for member_id, owned in divided.items() for partition in owned}


def test_kafkas_first_example() -> None:
    """KIP-54: four topics of two partitions; one of three members goes, and the others keep all that they have."""
    counts = dict.fromkeys(("t0", "t1", "t2", "t3"), 2)
    wanted = {member_id: sorted(counts) for member_id in "ABC"}
    before = assign_sticky(counts, eager(wanted))
    assert before == {
        "A": partitions("t0:0 t1:1 t3:0"),
        "B": partitions("t0:1 t2:0 t3:1"),
        "C": partitions("t1:0 t2:1"),
    }
    del wanted["B"]
    after = assign_sticky(counts, eager(wanted, before))
    assert all(set(before[member_id]) <= set(after[member_id]) for member_id in wanted)
    assert sizes(after) == [4, 4]


def test_kafkas_second_example() -> None:
    """KIP-54: members that want different topics; one goes, and only what it had is divided again."""
    counts = {"t0": 1, "t1": 2, "t2": 3}
    wanted = {"A": ["t0"], "B": ["t0", "t1"], "C": ["t0", "t1", "t2"]}
    before = assign_sticky(counts, eager(wanted))
    assert before == {"A": partitions("t0:0"), "B": partitions("t1:0,1"), "C": partitions("t2:0,1,2")}
    del wanted["A"]
    after = assign_sticky(counts, eager(wanted, before))
    assert after == {"B": partitions("t1:0,1 t0:0"), "C": partitions("t2:0,1,2")}


@given(COUNTS, UNIFORM, st.data())
def test_equal_subscriptions_are_balanced_with_the_fewest_moves(
    counts: Counts, wanted: Wanted, data: st.DataObject
) -> None:
    """No two members differ by more than one, and as much stays as such a balance permits."""
    owned = draw_owned(data, counts, wanted)
    divided = assign_sticky(counts, eager(wanted, owned))
    check_once(counts, wanted, divided)
    assert max(sizes(divided)) - min(sizes(divided)) <= 1
    quota, larger = divmod(len(all_wanted(counts, wanted)), len(wanted))
    had = [len(owned[member_id]) for member_id in wanted]
    most = sum(min(each, quota) for each in had) + min(larger, sum(each > quota for each in had))
    assert sum(len(set(owned[member_id]) & set(divided[member_id])) for member_id in wanted) == most


@given(COUNTS, GROUPS, st.data())
def test_no_single_move_makes_members_more_equal(counts: Counts, wanted: Wanted, data: st.DataObject) -> None:
    """However members differ in what they want, unless the division as it was is as good."""
    divided = assign_sticky(counts, eager(wanted, draw_owned(data, counts, wanted)))
    check_once(counts, wanted, divided)
    for partition, member_id in owner_of(divided).items():
        for other, topics in wanted.items():
            if partition[0] in topics:
                assert len(divided[other]) + 1 >= len(divided[member_id])


@given(COUNTS, GROUPS)
def test_what_is_balanced_stays(counts: Counts, wanted: Wanted) -> None:
    """A rebalance for no reason moves nothing."""
    before = assign_sticky(counts, eager(wanted))
    after = assign_sticky(counts, eager(wanted, before))
    assert owner_of(after) == owner_of(before)


@given(COUNTS, UNIFORM, st.sampled_from("ABCDEF"))
def test_who_stays_keeps_what_it_has(counts: Counts, wanted: Wanted, gone: str) -> None:
    """When a member goes, the others lose nothing; when it comes back, they lose only what it gets."""
    before = assign_sticky(counts, eager(wanted))
    rest = {member_id: topics for member_id, topics in wanted.items() if member_id != gone}
    if not rest:
        return
    without = assign_sticky(counts, eager(rest, before))
    assert all(set(before[member_id]) <= set(without[member_id]) for member_id in rest)
    topics = next(iter(rest.values()))
    again = assign_sticky(counts, eager({**rest, gone: topics}, {**without, gone: []}))
    assert all(set(again[member_id]) <= set(without[member_id]) for member_id in rest)


def draw_owned(data: st.DataObject, counts: Counts, wanted: Wanted) -> dict[str, list[TopicPartition]]:
    """What members may have had: of what they want, each partition at most once."""
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in wanted}
    for partition in sorted(all_wanted(counts, wanted)):
        wanting = [member_id for member_id, topics in wanted.items() if partition[0] in topics]
        member_id = data.draw(st.sampled_from([None, *wanting]))
        if member_id is not None:
            owned[member_id].append(partition)
    return owned


@given(COUNTS, UNIFORM, st.data())
def test_two_cooperative_rebalances_are_enough(counts: Counts, wanted: Wanted, data: st.DataObject) -> None:
    """KIP-429, where all want the same: after the second each partition has its owner, and a third changes nothing."""
    wanted = {**wanted, "new": next(iter(wanted.values()))}
    rounds = rebalance(counts, wanted, draw_owned(data, counts, wanted))
    check_once(counts, wanted, rounds[min(1, len(rounds) - 1)])
    assert len(rounds) <= 2


@given(COUNTS, GROUPS, st.data())
def test_nothing_moves_before_it_was_given_away(counts: Counts, wanted: Wanted, data: st.DataObject) -> None:
    """At no time does a partition have two owners. Where members want different things it may take more rebalances,
    but at most as many as there are partitions."""
    had = draw_owned(data, counts, wanted)
    # Someone who is new, and someone who wants something else now, among them.
    wanted = {**wanted, "new": data.draw(st.sampled_from(list(wanted.values())))}
    rounds = rebalance(counts, wanted, had)
    check_once(counts, wanted, rounds[-1])
    assert len(rounds) <= max(2, len(all_wanted(counts, wanted)))


def rebalance(counts: Counts, wanted: Wanted, had: Divided) -> list[Divided]:
    """Cooperative rebalances until one changes nothing; what each of the others assigned."""
    rounds: list[Divided] = []
    for generation in range(1, 100):
        before = owner_of(had)
        had = assign_cooperative(counts, cooperative(wanted, had, generation))
        given = [partition for owned in had.values() for partition in owned]
        assert len(set(given)) == len(given)
        assert all(before.get(partition, member_id) == member_id for partition, member_id in owner_of(had).items())
        if rounds and owner_of(had) == before:
            return rounds
        rounds.append(had)
    pytest.fail("it does not end")


def test_a_move_takes_two_rebalances() -> None:
    """The first takes two partitions away from the member that has all, the second gives them to the new one."""
    counts, wanted = {"t0": 4}, {"A": ["t0"], "B": ["t0"]}
    first = assign_cooperative(counts, cooperative(wanted, {"A": partitions("t0:0,1,2,3")}))
    assert first == {"A": partitions("t0:0,1"), "B": []}
    second = assign_cooperative(counts, cooperative(wanted, first, 2))
    assert second == {"A": partitions("t0:0,1"), "B": partitions("t0:2,3")}


def test_what_is_taken_away_is_spread_over_topics() -> None:
    """A member with too much keeps the low partitions of each topic, and not one topic as a whole."""
    wanted = {"A": ["t0", "t1"], "B": ["t0", "t1"]}
    divided = assign_sticky({"t0": 2, "t1": 2}, eager(wanted, {"A": partitions("t0:0,1 t1:0,1")}))
    assert divided == {"A": partitions("t0:0 t1:0"), "B": partitions("t0:1 t1:1")}


def test_what_is_new_is_moved_before_what_is_owned() -> None:
    """Where members want different things: t0-1 has no owner yet, so it goes to D instead of A's t0-0."""
    wanted = {"A": ["t0", "t2"], "B": ["t1", "t2"], "D": ["t0", "t1"]}
    had = {"A": partitions("t0:0"), "D": partitions("t1:0")}
    divided = assign_sticky({"t0": 2, "t1": 2, "t2": 2}, eager(wanted, had))
    assert {member_id: sorted(owned) for member_id, owned in divided.items()} == {
        "A": partitions("t0:0 t2:1"),
        "B": partitions("t1:1 t2:0"),
        "D": partitions("t0:1 t1:0"),
    }


def test_the_newest_generation_is_believed() -> None:
    """Of two members that claim a partition, the one with the newer generation has it; of the same, neither."""
    t0, t1 = ("t0", 0), ("t0", 1)
    claims = settle_claims({"t0": 2}, {"A": Claim((t0, t1), 4), "B": Claim((t0,), 5), "C": Claim((("t0", 9),), 5)})
    assert claims.owner == {t0: "B", t1: "A"}
    assert claims.former == {t0: "A", t1: "A"}
    disputed = settle_claims({"t0": 2}, {"A": Claim((t0,), 5), "B": Claim((t0, t1), 5), "C": Claim((t0,), 4)})
    assert (disputed.owner, disputed.disputed) == ({t1: "B"}, {t0})
    newer = settle_claims({"t0": 2}, {"A": Claim((t0,), 4), "B": Claim((t0,), 4), "C": Claim((t0,), 5)})
    assert (newer.owner, newer.disputed) == ({t0: "C"}, frozenset())


def test_what_two_members_claim_is_given_to_no_one() -> None:
    """Both may be reading it: cooperative members give it away first."""
    wanted = {"A": ["t0"], "B": ["t0"]}
    both = {"A": partitions("t0:0,1"), "B": partitions("t0:1")}
    first = assign_cooperative({"t0": 2}, cooperative(wanted, both))
    assert first == {"A": partitions("t0:0"), "B": []}
    assert assign_sticky({"t0": 2}, eager(wanted, both)) == {"A": partitions("t0:0"), "B": partitions("t0:1")}


def test_a_former_owner_gets_its_partition_back() -> None:
    """One that missed a generation, if the partition has to be moved anyway."""
    wanted = {"A": ["t0", "t1"], "B": ["t0"], "C": ["t0", "t1", "t2"]}
    first, second, _ = eager(wanted, {"A": partitions("t0:0,1,2,3")}, 5)
    assert ("t0", 0) in assign_sticky({"t0": 4}, [first, second, Subscriber("C", Subscription(("t0", "t1")))])["B"]
    third = Subscriber("C", Subscription(("t0", "t1"), user_data(partitions("t0:0"), 4)))
    assert ("t0", 0) in assign_sticky({"t0": 4}, [first, second, third])["C"]


@given(st.lists(st.tuples(st.sampled_from(["t0", "t1"]), st.integers(0, 9)), unique=True), st.integers(-1, 99))
def test_user_data_comes_back(owned: list[TopicPartition], generation_id: int) -> None:
    """In the newest form, and in the oldest, which has no generation."""
    data = user_data(owned, generation_id)
    assert (sorted(read_user_data(data).partitions), read_user_data(data).generation_id) == (
        sorted(owned),
        generation_id,
    )
    assert sorted(read_user_data(data[:-4]).partitions) == sorted(owned)
    assert read_user_data(data[:-4]).generation_id == -1


@given(st.binary(max_size=30))
def test_user_data_that_cannot_be_read_claims_nothing(data: bytes) -> None:
    """It comes from other members: nothing in it may stop the leader."""
    assert read_user_data(data).generation_id >= -(1 << 31)
    assert read_user_data(b"\0\0\0\1") == read_user_data(None) == Claim((), -1)


@pytest.mark.parametrize(
    ("subscription", "generation_id"),
    [
        (Subscription(("t0",), cooperative_user_data(7)), 7),
        (Subscription(("t0",), cooperative_user_data(7), (), 8), 8),
        (Subscription(("t0",), b"\0"), -1),
        (Subscription(("t0",)), -1),
    ],
)
def test_the_generation_of_cooperative_members(subscription: Subscription, generation_id: int) -> None:
    """From the subscription if it is new enough (KIP-792), else from the user data."""
    assert claim_of(subscription).generation_id == generation_id


def test_movements_are_undone_rather_than_crossed() -> None:
    """No two members exchange partitions of one topic."""
    movements = Movements()
    movements.moved(("t0", 0), "A", "B")
    assert movements.instead_of(("t0", 1), "B", "A") == ("t0", 0)
    assert movements.instead_of(("t1", 1), "B", "A") == ("t1", 1)
    movements.moved(("t0", 0), "B", "C")
    assert movements.instead_of(("t0", 1), "C", "A") == ("t0", 0)
    movements.moved(("t0", 0), "C", "A")
    assert movements.instead_of(("t0", 1), "C", "A") == ("t0", 1)
