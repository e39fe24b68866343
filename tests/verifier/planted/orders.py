"""Planted pairs for elections beside an order to elect uncleanly (``elect-unclean``): before it, and refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.settings import settings
from tests.support.stories import SECOND, Story
from tests.verifier.planted.excuses import LOSSES, election, excused, fault
from tests.verifier.planted.model import Planted

#: Nothing but an order lets an election take what was acknowledged.
ALL = settings(acks="all", idempotence=False, replica_lag_time_max_ms=1000, session_timeout_ms=1000)
#: The fault begins before the election, which was seen between 1.2 s and 1.4 s.
BEGAN, ENDED = SECOND, 2 * SECOND
REFUSED = {"answer": "ELIGIBLE_LEADERS_NOT_AVAILABLE", "all_answers": ["ELIGIBLE_LEADERS_NOT_AVAILABLE"]}
CARRIED_OUT = {"answer": "NONE", "all_answers": ["REQUEST_TIMED_OUT", "NONE"], "elections": 1}


def ordered(at_ns: int, *, over_ns: int | None = None, **seen: Any) -> Callable[[Story], None]:
    """An election lost what was acknowledged by all, and the fault sent its order then.

    ``over_ns``: when everything was seen to be well again.
    """

    def plant(story: Story) -> None:
        election(6, ALL)(story)
        story.faults_requested = ["elect-unclean"]
        story.faults = fault("elect-unclean", "partition t-0, from brokers 1 to replica 2", BEGAN, ENDED)
        story.faults[0]["probe"] = {"ordered_ns": at_ns, **(seen or CARRIED_OUT)}
        if over_ns is not None:
            story.faults[1] |= {"healed": True, "end_ns": over_ns}

    return plant


PLANTED: Mapping[str, Planted] = {
    "cut off by an election that was ordered": Planted(ordered(11 * SECOND // 10), excused(LOSSES, "election")),
    "cut off before the order, while its fault prepared it": Planted(
        ordered(16 * SECOND // 10), LOSSES, neighbor="cut off by an election that was ordered"
    ),
    "cut off by an election after every order was refused": Planted(
        ordered(11 * SECOND // 10, **REFUSED, elections=0),
        LOSSES,
        neighbor="cut off by an election after a refusal that the journals contradict",
    ),
    "cut off by an election after a refusal that the journals contradict": Planted(
        ordered(11 * SECOND // 10, **REFUSED, elections=1), excused(LOSSES, "election")
    ),
    "cut off by an ordered election before its fault was over": Planted(
        ordered(10 * SECOND // 10, over_ns=2 * SECOND), excused(LOSSES, "election")
    ),
    "cut off by an election after the fault of an order was over": Planted(
        ordered(10 * SECOND // 10, over_ns=11 * SECOND // 10),
        LOSSES,
        neighbor="cut off by an ordered election before its fault was over",
    ),
}
