"""When the run's own faults ordered unclean elections (``elect-unclean``), and in which partitions. Pure.

Reads what the conductor recorded of its own deeds, by its own clock: no broker vouches for the time of an order. What
an order excuses is ``verifier.excuses.event_rows``'. The time counts because the fault prepares its order for up to a
minute: it takes a follower out of the ISR and kills the rest. It did not order an election that happens meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from verifier.evidence.fault_kinds import NOT_ORDERED, ORDER_REFUSALS, ORDERED_NS, UNCLEAN_ORDER
from verifier.witness.effectiveness import Injected

_PARTITION = re.compile(r"partition (\S+)-(\d+),")


#: Until when an order may have been carried out whose fault was not seen to be over, or that had no final answer.
NEVER_OVER = 2**62
#: The answer to an order that was carried out: none is on its way anymore.
_DONE = "NONE"


def unclean_orders(happened: Iterable[Injected]) -> dict[tuple[str, int], int]:
    """The partitions in which an unclean election was ordered, and when the first order was sent in each.

    An order counts whatever its answer, which may have been lost, unless every answer was a refusal and the journals
    have no such election. One without a time, of a record from before faults told it, counts from the fault's start.
    """
    found: dict[tuple[str, int], int] = {}
    for place, each in _orders(happened):
        ordered_ns = each.probe.get(ORDERED_NS)
        from_ns = ordered_ns if isinstance(ordered_ns, int) else each.start_ns
        found[place] = min(from_ns, found.get(place, from_ns))
    return found


def orders_over(happened: Iterable[Injected]) -> dict[tuple[str, int], int]:
    """The same partitions, and when the last of these faults was over in each: every replica was in the ISR again.

    An election that began later found all replicas with one log, and may lose nothing.
    """
    found: dict[tuple[str, int], int] = {}
    for place, each in _orders(happened):
        found[place] = max(_over_ns(each), found.get(place, 0))
    return found


def _orders(happened: Iterable[Injected]) -> Iterator[tuple[tuple[str, int], Injected]]:
    for each in happened:
        named = _PARTITION.match(each.target)
        if each.fault == UNCLEAN_ORDER and not each.skipped and named and not _never_took_effect(each.probe):
            yield (named[1], int(named[2])), each


def _over_ns(each: Injected) -> int:
    if each.probe.get("answer") != _DONE or each.end_ns is None:
        return NEVER_OVER
    if each.healed:
        return each.end_ns
    return each.again_ns if each.late and each.again_ns is not None else NEVER_OVER


def _never_took_effect(probe: Mapping[str, object]) -> bool:
    """Whether nothing was ordered, or every order was refused. The fault may have failed before it looked for the
    election in the journals, and then a refusal alone does not tell."""
    if probe.get("answer") == NOT_ORDERED:
        return True
    answers = probe.get("all_answers")
    refused = isinstance(answers, list) and bool(answers) and all(each in ORDER_REFUSALS for each in answers)
    return refused and probe.get("elections") == 0
