"""Each invariant of what a controller knows, broken by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cluster.controller import invariants
from cluster.controller.context import NO_LEADER, ControllerContext, Partition
from tests.cluster.controller.situations import T0, context_with, led
from tests.support.invariants import is_named, raised, stated

STANDS = led(1, (1, 2))


def context() -> ControllerContext:
    return context_with((1, 2, 3), STANDS)


def change(known: ControllerContext, **fields: Any) -> None:
    partition = placed(known)
    assert partition.state is not None
    partition.state = replace(partition.state, **fields)


def placed(known: ControllerContext) -> Partition:
    partition = known.partition(T0)
    assert partition is not None
    return partition


def validate_all(known: ControllerContext) -> None:
    invariants.validate(known)
    invariants.validate_settled(known)
    invariants.validate_written(known, {T0: STANDS}.get)


def swap_brokers(known: ControllerContext) -> None:
    known.brokers[1], known.brokers[2] = known.brokers[2], known.brokers[1]


BREAKS: list[tuple[str, Callable[[ControllerContext], object]]] = [
    ("brokers-by-id", swap_brokers),
    ("replicas-once", lambda known: setattr(placed(known), "replicas", (1, 2, 2))),
    ("replicas-once", lambda known: setattr(placed(known), "adding", (4,))),
    ("isr-of-replicas", lambda known: change(known, isr=())),
    ("isr-of-replicas", lambda known: change(known, isr=(1, 1))),
    ("isr-of-replicas", lambda known: change(known, isr=(1, 4))),
    ("leader-in-isr", lambda known: change(known, leader=3)),
    ("epochs-not-above", lambda known: change(known, leader_epoch=-1)),
    ("epochs-not-above", lambda known: change(known, controller_epoch=6)),
    ("leader-alive", lambda known: known.brokers.pop(1)),
    ("leader-alive", lambda known: known.brokers[1].offline.add(T0)),
    ("leader-alive", lambda known: change(known, leader=NO_LEADER)),
    ("isr-alive", lambda known: known.brokers.pop(2)),
    ("not-ahead", lambda known: change(known, partition_epoch=10)),
    ("not-ahead", lambda known: change(known, leader_epoch=4, partition_epoch=8)),
    ("not-ahead", lambda known: change(known, isr=(1, 2, 3))),
    ("not-ahead", lambda known: known.topics["t"].partitions.update({1: Partition((1, 2, 3), STANDS)})),
]


@pytest.mark.parametrize(("name", "break_it"), BREAKS)
def test_what_is_broken_is_named(name: str, break_it: Callable[[ControllerContext], object]) -> None:
    """One line with the invariant's name and the values."""
    known = context()
    is_named(name, lambda: validate_all(known), lambda: break_it(known))


def test_each_is_stated_checked_and_broken() -> None:
    """In words, in code, and by hand."""
    assert stated(invariants) == raised(invariants) == {name for name, _ in BREAKS}


def test_the_last_of_an_in_sync_set_may_be_away() -> None:
    """Nobody leads then, and it stays in the set: no record was committed without it."""
    known = context()
    change(known, leader=NO_LEADER, isr=(2,))
    del known.brokers[2]
    invariants.validate(known)
    invariants.validate_settled(known)
