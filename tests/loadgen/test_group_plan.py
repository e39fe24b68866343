"""Members of a load's group: what may be asked for, and lives that are the same for the same seed."""

from __future__ import annotations

from itertools import islice
from statistics import mean

import pytest

from loadgen.group_plan import LEAST_LIFE_S, LifeEnd, Members, parse_members, places
from loadgen.spec import SpecError


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"native": -1}, "native of members"),
        ({"confluent": True}, "confluent of members"),
        ({"native": 0, "confluent": 0}, "at least one"),
        ({"lives_s": 1}, "lives_s of members"),
        ({"lives_s": "8"}, "lives_s of members"),
        ({"assignor": "sticky"}, "assignor of members is one of range"),
        ({"members": 3}, "members is a mapping with some of native"),
        (3, "members is a mapping with some of native"),
    ],
)
def test_members_that_make_no_sense_are_refused(spec: object, says: str) -> None:
    """With a line that names the field."""
    with pytest.raises(SpecError, match=says):
        parse_members(spec)  # type: ignore[arg-type]


def test_there_is_a_process_for_each_client() -> None:
    """And none for a client without members."""
    assert parse_members({}).processes() == [("members-native", "native", 3), ("members-confluent", "confluent", 3)]
    assert Members(native=0, confluent=2).processes() == [("members-confluent", "confluent", 2)]


def test_the_first_places_are_static() -> None:
    """Each with an id of its own, whatever the process."""
    found = [place.instance_id for client in ("native", "confluent") for place in places(Members(static=2), client)]
    assert found == ["native-0", "native-1", None, "confluent-0", "confluent-1", None]


def test_lives_come_from_the_seed() -> None:
    """Of each place its own ones; as long as asked for on average; dynamic members leave or crash, static ones restart
    or crash."""
    static, dynamic, _ = places(Members(), "native")
    lives = list(islice(dynamic.lives(7, 8.0), 400))
    assert lives == list(islice(dynamic.lives(7, 8.0), 400))
    assert lives != list(islice(dynamic.lives(8, 8.0), 400))
    assert lives[0] != next(places(Members(), "confluent")[1].lives(7, 8.0))
    assert all(life.seconds >= LEAST_LIFE_S for life in lives)
    assert 7 < mean(life.seconds for life in lives) < 9
    assert {life.end for life in lives} == {LifeEnd.LEAVE, LifeEnd.CRASH}
    assert {life.end for life in islice(static.lives(7, 8.0), 50)} == {LifeEnd.RESTART, LifeEnd.CRASH}
