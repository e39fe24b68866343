"""How long a fault on record had stopped a process of the load, and what of its loop's lag is its own. Pure.

As with processes that a fault killed (``verifier.completeness.killed``), a name in a record is not enough: the probe
must have seen this process stopped. What is left of the lag, before or after, counts as usual.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from verifier.evidence.series import SeriesPoint
from verifier.evidence.units import ms_of_ns
from verifier.witness.effectiveness import Injected

#: From when to when, in monotonic ns.
PauseSpan = tuple[int, int]
#: The faults that stop a process of the load.
_STOPS = frozenset(("pause-producers", "pause-members"))


def pauses(process: str, pids: Collection[int], injected: Iterable[Injected]) -> tuple[PauseSpan, ...]:
    """When this process, which had one of ``pids``, was stopped: from its injection until it was healed."""
    return tuple(
        (each.start_ns, each.healed_ns)
        for each in injected
        if each.fault in _STOPS
        and each.healed_ns is not None
        and not each.skipped
        and each.probe.get("process") == process
        and each.probe.get("pid") in pids
        and each.probe.get("stopped") is True
    )


def own_lag_ms(point: SeriesPoint, stops: Sequence[PauseSpan]) -> float:
    """The lag of a point of its series, without what of its interval the process was stopped."""
    begin_ns = point.time_ns - point.interval_ns
    stopped_ns = sum(max(0, min(end_ns, point.time_ns) - max(start_ns, begin_ns)) for start_ns, end_ns in stops)
    return max(0.0, point.loop_lag_ms - ms_of_ns(stopped_ns))
