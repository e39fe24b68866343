"""Decides which faults may overlap: how many brokers may be unavailable, or lose data, at the same time. Pure.

Overlapping faults form a group. On a slow machine, all faults of a group may last at the same moment, so each rule
applies to the group as a whole. There are two kinds of limits:

- *Availability.* Any number of brokers may be unavailable without harm: a kill removes nothing from a disk, and a
  partition that waits for its replicas loses nothing. ``Limits.down`` sets how many.
- *Safety.* A broker that loses data must not be the last one that has it. Once ISRs are full, everything acknowledged
  with acks=all is on every replica that stays in the ISR. So if at most ``replicas`` - 1 brokers lose data or are
  unavailable, one replica with all data remains. A fault that loses data waits until every replica is in sync, and
  therefore comes first in its group.

Does not own when faults begin (``generator``, ``swarm``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.schedules.kinds import FaultKind


@dataclass(frozen=True, slots=True)
class Limits:
    """How many faults may overlap (``at_once``), and how many of them may take a broker away (``down``).

    ``beside_losses``: other faults may overlap one that loses data, within the replication factor.
    """

    down: int = 1
    at_once: int = 2
    beside_losses: bool = False


#: The limits of ``gapless run --overlap``: never two brokers at once.
ORDINARY = Limits()


def may_join(group: Sequence[FaultKind], kind: FaultKind, limits: Limits, replicas: int) -> bool:
    """Whether this fault may begin while every fault of ``group`` may still last. ``replicas`` is per partition."""
    if len(group) >= limits.at_once or kind.loses:
        return False
    if kind.needs_sync and any(each.takes_broker for each in group):
        return False
    if not all(_leave_something(each, kind, limits) for each in group):
        return False
    together = [*group, kind]
    away = sum(each.takes_broker for each in together)
    if any(each.loses for each in together) and away > replicas - 1:
        return False
    return away <= max(1, limits.down)


def _leave_something(one: FaultKind, other: FaultKind, limits: Limits) -> bool:
    """Whether there is still something to observe if both last at once. Does not count brokers: ``may_join`` does."""
    both = {one.hits, other.hits}
    if one.loses and limits.beside_losses:
        both = {"broker", other.hits}
    if "everything" in both or both in ({"zookeeper"}, {"load"}):
        return False
    # traffic may stop if a broker is down, its link is cut, or the load is paused
    return "traffic" not in both or not both & {"broker", "link", "load"}
