"""What several brokers' answers add up to."""

from __future__ import annotations

import asyncio
from functools import partial
from unittest.mock import Mock

from chaos.conductor.cluster_orders import BrokerOrders
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


def test_a_dead_broker_is_not_waited_for() -> None:
    """No look at the cluster asks it, so none comes late. Orders and lists of addresses have it: it may come back."""
    transport, lives = Mock(), {1: True, 2: True}
    observer = Observer(transport, Mock(), "t")
    for broker in lives:
        observer.set_addresses(
            broker, f"localhost:900{broker}", f"localhost:910{broker}", partial(lives.get, broker, False)
        )
    other = observer.of_topic("u")
    lives |= {1: False, 2: False}
    for each in (observer, other):
        assert each.control_addresses() == ["localhost:9001", "localhost:9002"]
        assert each.metrics_urls() == ["http://localhost:9101/metrics", "http://localhost:9102/metrics"]
        orders = each.orders()
        assert isinstance(orders, BrokerOrders)
        assert orders.control == {1: "localhost:9001", 2: "localhost:9002"}
        assert not asyncio.run(each.answers(1, 100)) and asyncio.run(each.metrics(1)) is None
        assert asyncio.run(each.view()).alive == frozenset()
    assert transport.mock_calls == []
    observer.set_addresses(1, "localhost:9011", "", lambda: True)
    assert other.control_addresses() == ["localhost:9011", "localhost:9002"]
