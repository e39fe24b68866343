"""How much may be away at once: the arithmetic of faults that last together. Pure.

Faults that overlap make a group: whatever is late on a slow machine, all of a group may last at the same moment, so
each rule holds for the group as a whole. Two kinds of limits:

- *Availability.* How many brokers may be away is a matter of taste: a kill takes nothing from a disk, and a partition
  that waits for its replicas loses nothing. ``Limits.down`` says how many.
- *Safety.* A broker that loses data must not be the last one that has it. From full ISRs on, everything that is
  acknowledged with acks=all is on every replica that stays in the ISR. So if of ``replicas`` at most all but one lose
  something or are away, one that has everything stays. A fault that loses data waits until every replica is in sync;
  therefore it comes first in its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.schedules.kinds import FaultKind


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be away at once. ``at_once`` faults may last together; of them ``down`` may take a broker away.

    ``beside_losses``: others may come beside a fault that loses data, within the replication factor.
    """

    down: int = 1
    at_once: int = 2
    beside_losses: bool = False


#: What ``gapless run --overlap`` composes: never two brokers.
ORDINARY = Limits()


def may_join(group: Sequence[FaultKind], kind: FaultKind, limits: Limits, replicas: int) -> bool:
    """Whether this fault may begin while all of the group, in their order, may still last."""
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
    """Whether both at once leave something to observe. How many brokers are away is counted over the whole group."""
    both = {one.hits, other.hits}
    if one.loses and limits.beside_losses:
        both = {"broker", other.hits}
    if "everything" in both or both in ({"zookeeper"}, {"load"}):
        return False
    # what would carry the traffic may be down, or be the very link that is cut, and who would make it may sleep
    return "traffic" not in both or not both & {"broker", "link", "load"}
