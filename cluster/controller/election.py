"""Who leads next: pure functions on assignment, ISR and live brokers (Kafka's Election).

Owns the choice of leader and ISR. Does not own when to choose, epochs, or how the choice is written. ``replicas`` is
always the assignment in its order of preference; no function invents an order of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Election:
    """A leader and the ISR it starts with. ``recovering``: elected from outside the ISR, data may be lost."""

    leader: int
    isr: tuple[int, ...]
    recovering: bool = False


def elect_new(replicas: Sequence[int], live: Collection[int]) -> Election | None:
    """A partition that never had a leader: the first live replica leads, all live ones are in sync (with nothing)."""
    isr = tuple(replica for replica in replicas if replica in live)
    return Election(isr[0], isr) if isr else None


def elect_offline(
    replicas: Sequence[int], isr: Collection[int], live: Collection[int], *, unclean: bool
) -> Election | None:
    """The leader is gone. Clean: the first in assignment order that is live and in the ISR, which loses its dead.

    Unclean, only if allowed and no one qualifies: the first live replica, alone in the ISR (KAFKA-1555 is what happens
    when this is the default).
    """
    for replica in replicas:
        if replica in live and replica in isr:
            return Election(replica, tuple(member for member in isr if member in live))
    if unclean:
        for replica in replicas:
            if replica in live:
                return Election(replica, (replica,), recovering=True)
    return None


def elect_preferred(replicas: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Election | None:
    """Back to the first of the assignment, if it is live and in the ISR; the ISR stays."""
    if replicas and replicas[0] in live and replicas[0] in isr:
        return Election(replicas[0], tuple(isr))
    return None


def elect_controlled_shutdown(
    replicas: Sequence[int], isr: Sequence[int], live: Collection[int], shutting_down: Collection[int]
) -> Election | None:
    """The leader asks to go: the first live one in the ISR that stays; those that go leave the ISR."""
    for replica in replicas:
        if replica in live and replica in isr and replica not in shutting_down:
            return Election(replica, tuple(member for member in isr if member not in shutting_down))
    return None


def elect_reassign(targets: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Election | None:
    """The leader is not among the replicas that a reassignment wants: the first target that is live and in the ISR."""
    for replica in targets:
        if replica in live and replica in isr:
            return Election(replica, tuple(isr))
    return None
