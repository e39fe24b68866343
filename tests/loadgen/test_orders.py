"""Orders for single members: how they are told, and what those who come after them are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.group_plan import LifeEnd, MemberName
from loadgen.orders import MemberOrder, OrderBook, give_orders


def test_a_member_is_told_once_and_the_newest_order_of_its_place(tmp_path: Path) -> None:
    """Nothing before the file is there; each place for itself; a line that is not whole yet waits for its end."""
    path = tmp_path / "members-native.orders.jsonl"
    book = OrderBook(path)
    assert book.take(0) is None
    give_orders(path, [MemberOrder(1, 0, LifeEnd.CRASH, 3.5), MemberOrder(1, 2, LifeEnd.RESTART, 0.1)])
    give_orders(path, [MemberOrder(2, 2, LifeEnd.LEAVE, 0.1)])
    assert book.take(1) is None
    assert book.take(0) == MemberOrder(1, 0, LifeEnd.CRASH, 3.5)
    assert book.take(2) == MemberOrder(2, 2, LifeEnd.LEAVE, 0.1)
    assert book.take(0) is None and book.take(2) is None
    whole = '{"number": 3, "place": 0, "end": "left", "absence_s": 0.1}\n'
    with path.open("a") as file:
        file.write(whole[:20])
        file.flush()
        assert book.take(0) is None
        file.write(whole[20:])
    assert book.take(0) == MemberOrder(3, 0, LifeEnd.LEAVE, 0.1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (MemberName("members-native", 0, 4), "members-native-0-4"),
        (MemberName("members-confluent", 12, 0, 7), "members-confluent-12-0-after-7"),
    ],
)
def test_a_name_tells_place_instance_and_order(name: MemberName, text: str) -> None:
    """A member's name is read back as it is written."""
    assert str(name) == text
    assert MemberName.parse(text) == name


@pytest.mark.parametrize("text", ["", "consumer-1", "members-native-1", "members-native-1-2-after-", "x-1-2"])
def test_other_clients_have_other_names(text: str) -> None:
    """A group may have members that no load has."""
    assert MemberName.parse(text) is None
