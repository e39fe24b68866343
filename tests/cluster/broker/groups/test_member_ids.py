"""Ids of new members: none of a former life of the broker is given again."""

from __future__ import annotations

from random import Random

from cluster.broker.groups.group_service import member_id


def test_a_broker_with_the_same_seed_gives_other_ids_in_another_life() -> None:
    """Its groups are loaded with the members of its former life, some of which are still there."""
    first, again = Random(1), Random(1)
    ids = [member_id("client", first, 1000 + number) for number in range(100)]
    ids += [member_id("client", again, 90_000 + number) for number in range(100)]
    assert len(set(ids)) == 200
    assert all(each.startswith("client-") for each in ids)
