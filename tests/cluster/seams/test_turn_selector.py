"""TurnSelector: few sockets are served in a turn of the loop, and each in its turn."""

from __future__ import annotations

import selectors
import socket
from contextlib import ExitStack

import pytest

from cluster.seams.turn_selector import MOST_READY, TurnSelector
from cluster.seams.turns import Turns


@pytest.mark.parametrize("make", [TurnSelector, lambda: Turns(print)], ids=["TurnSelector", "Turns"])
def test_no_socket_is_left_out(make: type[selectors.BaseSelector]) -> None:
    """All stay readable: each is told of once before the first one is again."""
    pairs = 2 * MOST_READY
    with ExitStack() as stack:
        selector = stack.enter_context(make())
        for number in range(pairs):
            here, there = (stack.enter_context(end) for end in socket.socketpair())
            there.send(b"x")
            selector.register(here, selectors.EVENT_READ, number)
        turns = [[key.data for key, _ in selector.select(0)] for _ in range(2)]
        assert [len(each) for each in turns] == [MOST_READY] * 2
        assert sorted(turns[0] + turns[1]) == list(range(pairs))
        selector.unregister(here)
        assert all(key.data != pairs - 1 for _ in range(2) for key, _ in selector.select(0))
