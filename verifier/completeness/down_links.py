"""Whether links were down as often as the faults say that took them down: by their probes and the proxy's log. Pure.

Such a fault counts as one that bit, and what happened meanwhile may be excused by it. Its probe is its own record; the
proxy, another process, notes each time at which a link listens again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.witness.effectiveness import Injected

#: What the probe of such a fault counts at least if it bit (docs/faults.md), and how often a link is up again for it.
_LEAST_SEEN = {"flapping": {"refused_connections": 3, "times_up": 3}, "refuse": {"refused_connections": 3}}
_TIMES_UP = {"flapping": 3, "refuse": 1}


def unwitnessed(closing: Closing) -> Iterator[str]:
    """What such a fault claims and its probe or the proxy did not see, one line each. A probe that failed saw nothing.

    Of faults that overlap on a link, the one may leave the link down for the other: the log does not tell them apart.
    """
    down = [each for each in closing.faults.injected if each.fault in _TIMES_UP and not each.skipped]
    wanted: Counter[str] = Counter()
    for each in down:
        if not each.effective:
            continue
        for name, least in _LEAST_SEEN[each.fault].items():
            if _number(each, name) < least:
                told = f"injection {each.number} ({each.fault}) is said to have bitten, which takes {name} of {least}"
                yield f"{told}, and its probe has {each.probe.get(name)!r:.20}"
        if not any(_overlap(each, other) for other in down if other is not each):
            times = max(_TIMES_UP[each.fault], _number(each, "times_up"))
            wanted.update(dict.fromkeys(_links(each), times))
    for link, times in sorted(wanted.items()) if closing.link_starts else ():
        # it began to listen once before all faults
        if (again := closing.link_starts.get(link, 0) - 1) < times:
            yield f"{link} was up again {times} or more times, by the faults, and {max(again, 0)} by the proxy's log"


def _number(each: Injected, name: str) -> int:
    value = each.probe.get(name)
    return value if isinstance(value, int) else 0


def _links(each: Injected) -> frozenset[str]:
    return frozenset(each.target.split(", "))


def _overlap(one: Injected, other: Injected) -> bool:
    ends_ns = [2**62 if each.end_ns is None else each.end_ns for each in (one, other)]
    is_together = one.start_ns <= ends_ns[1] and other.start_ns <= ends_ns[0]
    return is_together and bool(_links(one) & _links(other))
