"""How long each partition went without an acknowledgement: in the whole run, and during each fault. Pure.

Owns these figures; judges nothing. A gap during a fault begins at an acknowledgement, but not before the injection. It
ends at the next acknowledgement, even if that comes after the fault. Without a next acknowledgement, it ends with the
load. So a partition in which nothing was ever acknowledged has the longest gap of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.evidence.phases import LOAD_PHASES
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import ms_of_ns
from verifier.facts import Gap
from verifier.witness.effectiveness import Injected


@dataclass(frozen=True, slots=True)
class FaultGap:
    """The longest gap of one partition during one fault, in ns. ``fault`` is the fault's index among the injections.

    ``ended``: an acknowledgement ended the gap.
    """

    fault: int
    topic: str
    partition: int
    longest_ns: int
    ended: bool
    ever_acknowledged: bool


def load_span(run: RunModel, acks: Mapping[tuple[str, int], NDArray[np.int64]]) -> tuple[int, int] | None:
    """When the load began and ended, in ns: from the phases and acknowledgements; None if there is neither."""
    spans = [(phase.start_ns, phase.end_ns) for phase in run.phases if phase.name in LOAD_PHASES]
    times = [time for each in acks.values() if each.size for time in (int(each[0]), int(each[-1]))]
    begins = [start for start, _ in spans] + times
    ends = [end for _, end in spans if end is not None] + times
    return (min(begins), max(ends)) if begins and ends else None


def longest_gaps(run: RunModel, gaps: Sequence[Gap]) -> dict[str, Any]:
    """The longest time without an acknowledgement: over all partitions, and in each one with its begin and end.

    If nothing was ever acknowledged in a partition, its gap is the whole load.
    """
    partitions: dict[str, dict[str, Any]] = {
        f"{gap.topic}-{gap.partition}": {
            "longest_gap_ms": round(ms_of_ns(gap.longest_ns), 1),
            "start_ns": gap.start_ns,
            "end_ns": gap.end_ns,
        }
        for gap in gaps
    }
    span = load_span(run, {})
    if span is not None and gaps:
        never = {"longest_gap_ms": round(ms_of_ns(span[1] - span[0]), 1), "start_ns": span[0], "end_ns": span[1]}
        for topic in run.topics:
            for partition in range(topic.partitions):
                partitions.setdefault(f"{topic.name}-{partition}", {**never, "never_acknowledged": True})
    longest = max((gap["longest_gap_ms"] for gap in partitions.values()), default=None)
    return {"longest_gap_ms": longest, "partitions": partitions}


def unavailability(
    run: RunModel, injected: Sequence[Injected], acks: Mapping[tuple[str, int], NDArray[np.int64]]
) -> list[FaultGap]:
    """The longest gap for each injected fault and each partition. ``acks`` has ascending times in ns by partition."""
    names = sorted({(t.name, partition) for t in run.topics for partition in range(t.partitions)} | set(acks))
    span = load_span(run, acks)
    if span is None:
        return []
    found = []
    for number, each in enumerate(injected):
        if each.skipped:
            continue
        over_ns = span[1] if each.end_ns is None else each.end_ns
        for topic, partition in names:
            times = acks.get((topic, partition), np.zeros(0, dtype=np.int64))
            longest_ns, ended = longest_gap(times, each.start_ns, over_ns, span[1])
            found.append(FaultGap(number, topic, partition, longest_ns, ended, bool(times.size)))
    return found


def longest_gap(times: NDArray[np.int64], start_ns: int, over_ns: int, end_ns: int) -> tuple[int, bool]:
    """The longest gap that began in ``start_ns..over_ns``, in ns, and whether an acknowledgement ended it.

    ``times`` are acknowledgements, ascending. The load ends at ``end_ns``.
    """
    over_ns = max(start_ns, min(over_ns, end_ns))
    first, behind = np.searchsorted(times, (start_ns, over_ns), side="right")
    edges = np.append(start_ns, times[first:behind])
    ended = bool(behind < times.size)
    last = times[behind] if ended else max(end_ns, int(edges[-1]))
    spans = np.diff(np.append(edges, last))
    longest = int(np.argmax(spans))
    return int(spans[longest]), ended or longest < spans.size - 1


def to_json(gaps: Sequence[FaultGap], injected: Sequence[Injected]) -> list[dict[str, Any]]:
    """The gaps in the form of ``verdict.json``: one entry per fault, with its partitions by name."""
    entries: dict[int, dict[str, Any]] = {}
    for gap in gaps:
        each = injected[gap.fault]
        entry = entries.setdefault(
            gap.fault,
            {
                "fault": each.fault, "target": each.target, "start_ns": each.start_ns,
                "healed_ns": each.healed_ns, "end_ns": each.end_ns, "partitions": {},
            },
        )  # fmt: skip
        entry["partitions"][f"{gap.topic}-{gap.partition}"] = {
            "longest_gap_ms": round(ms_of_ns(gap.longest_ns), 1),
            "ended": gap.ended,
            "ever_acknowledged": gap.ever_acknowledged,
        }
    return list(entries.values())
