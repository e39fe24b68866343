"""Checks the faults that take links down (``flapping``, ``refuse``) against their probes and the proxy's log. Pure.

Owns this check. If such a fault took effect, it can excuse anomalies, so its record must be right. The probe is the
fault's own record. The proxy is another process, and logs each time that a link begins to listen again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.witness.effectiveness import Injected

#: The least counts in the probe of an effective fault (docs/faults.md), and how often it brings its links up again.
_LEAST_SEEN = {"flapping": {"refused_connections": 3, "times_up": 3}, "refuse": {"refused_connections": 3}}
_TIMES_UP = {"flapping": 3, "refuse": 1}


def unwitnessed(closing: Closing) -> Iterator[str]:
    """One line for each claim of such a fault that its probe or the proxy's log does not confirm.

    If two of these faults overlap on a link, the first one may leave the link down for the second. Then the log does
    not show how often each one brought it up, and is not compared.
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
        # each link began to listen once before all faults
        if (again := closing.link_starts.get(link, 0) - 1) < times:
            yield f"{link} was up again {times} or more times, by the faults, and {max(again, 0)} by the proxy's log"


def _number(each: Injected, name: str) -> int:
    value = each.probe.get(name)
    return value if isinstance(value, int) else 0


def _links(each: Injected) -> frozenset[str]:
    return frozenset(each.target.split(", "))


def _overlap(one: Injected, other: Injected) -> bool:
    """Whether two faults share a link at any time."""
    ends_ns = [2**62 if each.end_ns is None else each.end_ns for each in (one, other)]
    is_together = one.start_ns <= ends_ns[1] and other.start_ns <= ends_ns[0]
    return is_together and bool(_links(one) & _links(other))
