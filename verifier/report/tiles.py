"""The large figures below the verdict. Owns which figures they are, and their small print; computes none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifier.evidence.phases import CHAOS
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint
from verifier.evidence.units import ms_of_ns
from verifier.report.html import duration, number
from verifier.report.summary import recovery_text
from verifier.surroundings.model import Outcomes
from verifier.verdict import UNCOUNTED, Verdict
from verifier.witness.effectiveness import Injected


def tiles(
    run: RunModel,
    verdict: Verdict,
    injected: Sequence[Injected],
    series: Sequence[SeriesPoint],
    outcomes: Outcomes | None,
    first_ack_ms: float | None = None,
) -> list[tuple[str, str, str]]:
    """(value, label, small print) of each figure. ``first_ack_ms``: how long the load waited for an acknowledgement.

    There are always eight, so that rows of four and of two are full.
    """
    stats = verdict.stats
    longest = verdict.availability.get("longest_gap_ms")
    worst = max((point.latency_p99_ms for point in series if point.acked and point.latency_p99_ms), default=None)
    recovered = verdict.availability.get("recoveries") or {}
    found = [
        (_counted(stats, "acked"), "acknowledged", _beside_the_acknowledged(stats, outcomes)),
        (
            _counted(stats, "read"),
            "read at the end",
            f"{_counted(stats, 'acked_and_read')} of them acknowledged",
        ),
        _faults(injected, run.evidence.planned_faults),
        _load(run),
        ("-" if longest is None else duration(longest), "longest ack gap", _where(verdict.availability, first_ack_ms)),
        (
            "-" if not recovered.get("count") else duration(recovered["longest_ms"]),
            "longest log recovery",
            recovery_text(recovered) if recovered.get("count") else "no broker was killed",
        ),
        ("-" if worst is None else duration(worst), "worst p99 latency", "from intended send, one second"),
    ]
    lag_ms = (stats.get("read_lag") or {}).get("worst_ms")
    of_readers = "from acknowledgement to delivery" if lag_ms is not None else "not measured"
    found.append(("-" if lag_ms is None else duration(float(lag_ms)), "longest read lag", of_readers))
    return found


def _load(run: RunModel) -> tuple[str, str, str]:
    """How long the cluster was under load, and how long the whole run took."""
    ends = [phase.end_ns for phase in run.phases if phase.end_ns is not None]
    whole = f"of {duration(ms_of_ns(max(ends) - run.started_ns))} that the run took" if ends else "the run has no end"
    span = next((phase for phase in run.phases if phase.name == CHAOS and phase.end_ns is not None), None)
    under = "-" if span is None or span.end_ns is None else duration(ms_of_ns(span.end_ns - span.start_ns))
    return under, "under load", whole


def _faults(injected: Sequence[Injected], planned: int) -> tuple[str, str, str]:
    bit, label = sum(each.effective for each in injected), "faults that bit"
    if not injected and planned:
        return f"0 / {planned}", label, "planned, and never injected"
    if not injected:
        return "none", label, "none planned"
    return f"{bit} / {len(injected)}", label, "each probed at inject and heal"


def _counted(stats: Mapping[str, Any], name: str) -> str:
    return number(stats[name]) if name in stats else UNCOUNTED


def _where(availability: Mapping[str, Any], first_ack_ms: float | None) -> str:
    """Where the longest gap was. It does not include the time before the load's first acknowledgement."""
    partitions = availability.get("partitions") or {}
    if not partitions:
        return "of the worst partition"
    name, gap = max(partitions.items(), key=lambda item: item[1]["longest_gap_ms"])
    if gap.get("never_acknowledged"):
        return f"in {name}, where nothing was ever acknowledged"
    before = "" if first_ack_ms is None else f", which came after {duration(first_ack_ms)}"
    return f"in {name}; counted from the load's first acknowledgement{before}"


def _beside_the_acknowledged(stats: Mapping[str, Any], outcomes: Outcomes | None) -> str:
    parts = [f"{_counted(stats, 'unknown')} of unknown outcome"]
    if outcomes is not None and outcomes.never_sent:
        parts.append(f"{number(outcomes.never_sent)} reserved, never sent: not losses")
    if stats.get("deleted"):
        parts.append(f"{number(stats['deleted'])} deleted by retention or DeleteRecords")
    return "; ".join(parts)
