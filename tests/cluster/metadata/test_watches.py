"""The bookkeeping of lasting watches, without a store: no change is missed, no stale news is heeded."""

from __future__ import annotations

from cluster.metadata.watches import Watch, WatchKeeper


class Arms:
    """Records what the keeper asks for."""

    def __init__(self) -> None:
        self.asked: list[tuple[bool, int]] = []

    def __call__(self, watch: Watch, token: int) -> None:
        self.asked.append((watch.waits_for_creation, token))


def keeper(*, children: bool, connected: bool = True):
    arms, calls = Arms(), []
    keeper = WatchKeeper(arms)
    watch = Watch("/x", lambda: calls.append(1), children=children)
    keeper.add(watch, connected=connected)
    return keeper, watch, arms, calls


def test_the_listener_is_called_when_the_watch_is_in_place_not_when_it_fires():
    """What the listener then reads is watched already, so nothing falls in between."""
    keep, watch, arms, calls = keeper(children=False)
    keep.in_place(watch, 1, again=False)
    assert len(calls) == 1
    keep.fired(watch, 1)
    assert (len(calls), arms.asked[-1]) == (1, (False, 2))
    keep.in_place(watch, 2, again=False)
    assert len(calls) == 2


def test_nothing_is_set_while_there_is_no_connection():
    """It is set when the connection is there."""
    keep, watch, arms, _ = keeper(children=False, connected=False)
    assert arms.asked == []
    keep.arm_all()
    assert arms.asked == [(False, 1)]
    assert repr(watch) == "Watch(/x, data, token=1)"


def test_children_of_a_node_that_is_not_there_wait_for_its_creation():
    """ZooKeeper watches children of existing nodes only; the creation may also come between the two calls."""
    keep, watch, arms, calls = keeper(children=True)
    keep.node_absent(watch, 1)
    assert arms.asked[-1] == (True, 2)
    keep.in_place(watch, 2, again=True)
    assert (arms.asked[-1], calls) == ((False, 3), [])
    keep.in_place(watch, 3, again=False)
    assert len(calls) == 1


def test_news_of_a_former_connection_is_ignored():
    """After a reconnection all watches have new tokens."""
    keep, watch, arms, calls = keeper(children=False)
    keep.arm_all()
    keep.fired(watch, 1)
    keep.in_place(watch, 1, again=False)
    keep.node_absent(watch, 1)
    assert (calls, arms.asked) == ([], [(False, 1), (False, 2)])
