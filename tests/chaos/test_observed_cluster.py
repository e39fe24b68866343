"""What several brokers' answers add up to."""

from __future__ import annotations

from unittest.mock import Mock

from chaos.conductor.observed_cluster import BrokerView, ObservedPartition, merge
from chaos.conductor.observer import Observer


def _seen(by: int, alive: set[int], controller: int, leader: int, epoch: int, isr: tuple[int, ...]) -> BrokerView:
    return BrokerView(by, frozenset(alive), controller, {0: ObservedPartition(leader, epoch, (1, 2, 3), isr)})


def test_an_isolated_broker_does_not_outvote_the_others() -> None:
    """The leader is whoever the highest epoch names; a broker is alive if most of those that answer list it."""
    view = merge(
        [
            _seen(1, {1, 2, 3}, 1, 1, 4, (1, 2, 3)),
            _seen(2, {2, 3}, 2, 2, 5, (2, 3)),
            _seen(3, {2, 3}, 2, 2, 5, (2, 3)),
        ]
    )
    assert view.alive == {2, 3}
    assert view.controller == 2
    assert view.partitions[0].leader == 2
    assert not view.in_sync(1)


def test_at_one_epoch_the_leader_knows_its_isr_first() -> None:
    """Followers hear of an ISR change later than the leader that made it."""
    view = merge([_seen(2, {1, 2, 3}, 1, 1, 4, (1, 2)), _seen(1, {1, 2, 3}, 1, 1, 4, (1, 2, 3))])
    assert view.in_sync(1)
    assert not view.in_sync(2)


def test_no_answers_make_an_empty_view() -> None:
    """Nothing is known of a cluster that does not answer."""
    view = merge([])
    assert view.alive == frozenset()
    assert view.controller is None
    assert not view.in_sync(1)


def test_brokers_are_named_in_their_order() -> None:
    """Whichever was ready first, or was started again."""
    observer = Observer(Mock(), Mock(), "t")
    for broker in (3, 1, 2, 10):
        observer.set_addresses(broker, f"localhost:{9000 + broker}", "")
    assert observer.control_addresses() == [f"localhost:{9000 + broker}" for broker in (1, 2, 3, 10)]
