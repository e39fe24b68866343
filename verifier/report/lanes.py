"""The lanes of the time line: faults, the longest gap, anomalies, and the leaders of each partition. Pure.

Owns their layout and bounds. Does not own the axis and the types (``verifier.report.drawing``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from verifier.evidence.how_many import how_many
from verifier.report.drawing import LANE, LEFT, TOP, Axis, Lane, LaneBar, Timeline, time_ticks
from verifier.surroundings.model import LeaderChange, Moments, Name
from verifier.witness.effectiveness import Injected

#: The most partitions with a lane (those with the most changes), and the number of colors of brokers.
MOST_PARTITIONS = 64
COLORS = 6

#: The most bars of one lane, and the width of a mark for anomalies.
MOST_BARS = 400
MARK = 3.0


def fault_lanes(injected: Sequence[Injected], axis: Axis) -> list[tuple[str, list[LaneBar]]]:
    """One row for each kind of fault. A bar lasts until healing began; a second one until the cluster had recovered."""
    by_fault: dict[str, list[LaneBar]] = defaultdict(list)
    for each in injected:
        bars = by_fault[each.fault]
        if len(bars) >= MOST_BARS:
            continue
        kind = "skipped" if each.skipped else "bit" if each.effective else "missed"
        title = fault_title(each, axis)
        over_ns = each.end_ns or each.start_ns
        healed_ns = min(each.healed_ns or over_ns, over_ns)
        bars.append(axis.bar(each.start_ns, healed_ns, kind, title, least=3.0))
        if over_ns > healed_ns and axis.x(over_ns) - axis.x(healed_ns) >= 1:
            bars.append(axis.bar(healed_ns, over_ns, "recovering", title))
    return list(by_fault.items())


def fault_title(each: Injected, axis: Axis) -> str:
    """One fault described in one line."""
    title = f"{each.fault} on {each.target}, at {axis.seconds(each.start_ns):.1f} s: {each.effect}"
    if each.end_ns is None:
        return title if each.skipped else f"{title}, not healed"
    healed = "" if each.healed_ns is None else f", healed from {axis.seconds(each.healed_ns):.1f} s"
    over = "over at" if each.healed else "looked at until"
    return f"{title}{healed}, {over} {axis.seconds(each.end_ns):.1f} s"


def gap_lane(availability: Mapping[str, Any], axis: Axis) -> list[tuple[str, list[LaneBar]]]:
    """A row with the longest time without an acknowledgement in any partition; empty if there is none."""
    worst = max(availability.get("partitions", {}).items(), key=lambda item: item[1]["longest_gap_ms"], default=None)
    if worst is None:
        return []
    name, gap = worst
    if gap["end_ns"] <= axis.start_ns or gap["start_ns"] >= axis.end_ns:
        return []
    title = f"{name}: {gap['longest_gap_ms']:,.0f} ms without an acknowledgement, the longest of all"
    return [("longest ack gap", [axis.bar(gap["start_ns"], gap["end_ns"], "gap", title)])]


def anomaly_lanes(moments: Sequence[Moments], axis: Axis) -> list[tuple[str, list[LaneBar]]]:
    """One row for each check with anomalies whose time is known. Anomalies at nearly the same time share a mark."""
    rows: dict[str, list[LaneBar]] = defaultdict(list)
    for each in moments:
        marks: Counter[float] = Counter()
        for at, count in zip(each.times_ns, each.counts, strict=True):
            marks[round((axis.x(at) - LEFT) // MARK * MARK + LEFT, 1)] += count
        kind, words = ("let", " (allowed)") if each.allowed else ("found", "")
        span_s = axis.seconds(axis.end_ns) / (axis.right - LEFT)
        for x, count in sorted(marks.items()):
            at_s = (x - LEFT) * span_s
            title = f"{each.check}{words}: {count:,} acknowledged at about {at_s:.1f} s"
            rows[each.check].append(LaneBar(min(x, axis.right - MARK), MARK - 0.5, kind, title))
    return list(rows.items())


def stacked(rows: Sequence[tuple[str, Sequence[LaneBar]]], top: float = TOP) -> tuple[Lane, ...]:
    """Lanes for these rows, from ``top`` downwards."""
    return tuple(Lane(label, top + LANE * index, tuple(bars)) for index, (label, bars) in enumerate(rows))


def leader_lanes(changes: Sequence[LeaderChange], axis: Axis, replication_factor: int) -> Timeline | None:
    """The leader of each partition over time, with its epoch; None if no leader is known.

    If the ISR lacks a replica, the bar is open at the bottom.
    """
    by_name: dict[Name, list[LeaderChange]] = defaultdict(list)
    for change in changes:
        by_name[change.name].append(change)
    if not by_name:
        return None
    busiest = sorted(by_name, key=lambda name: (-len(by_name[name]), name))[:MOST_PARTITIONS]
    rows = [(f"{name[0]}-{name[1]}", _leader_bars(by_name[name], axis, replication_factor)) for name in sorted(busiest)]
    lanes = stacked([(label, bars) for label, bars in rows if bars], top=6)
    drawn = [bar for lane in lanes for bar in lane.bars]
    bottom = 6 + LANE * len(lanes) + 4
    left_out = len(by_name) - len(lanes)
    leaders = sorted({change.leader for change in changes if change.leader >= 0})
    kinds = tuple((f"b{(leader - 1) % COLORS}", f"broker {leader}") for leader in leaders[:COLORS])
    return Timeline(
        height=bottom + 26,
        bottom=bottom,
        top=6,
        width=axis.width,
        right=axis.right,
        ticks=time_ticks(axis),
        lanes=lanes,
        kinds=(*kinds, *(words for kind, words in _OTHERS.items() if any(kind in bar.kind for bar in drawn))),
        note=f"{how_many(left_out, 'more partition is', 'more partitions are')} not drawn: those that changed least."
        if left_out
        else "",
    )


#: Other kinds of bars in the legend: part of a bar's kind -> (kind, words).
_OTHERS = {"none": ("none", "no leader"), "short": ("shrunk", "ISR lacks a replica")}


def _leader_bars(changes: Sequence[LeaderChange], axis: Axis, replication_factor: int) -> list[LaneBar]:
    bars: list[LaneBar] = []
    for index, change in enumerate(changes[: MOST_BARS * 2]):
        until_ns = changes[index + 1].time_ns if index + 1 < len(changes) else axis.end_ns
        if until_ns <= axis.start_ns or change.time_ns >= axis.end_ns:
            continue
        led = "no leader" if change.leader < 0 else f"leader {change.leader}"
        title = (
            f"{change.name[0]}-{change.name[1]}: {led}, epoch {change.leader_epoch}, ISR "
            f"{','.join(map(str, change.isr)) or 'empty'}, from {axis.seconds(change.time_ns):.1f} s"
            f"{f' ({change.reason})' if change.reason else ''}"
        )
        kind = "none" if change.leader < 0 else f"b{(change.leader - 1) % COLORS}"
        before = changes[index - 1] if index else None
        is_new = before is None or (before.leader, before.leader_epoch) != (change.leader, change.leader_epoch)
        bar = axis.bar(change.time_ns, until_ns, kind, title, least=1.0)
        text = f"{change.leader}, e{change.leader_epoch}" if change.leader >= 0 else ""
        shown = text if is_new and bar.width > 6.5 * len(text) else ""
        short = bool(change.isr) and len(change.isr) < replication_factor
        bars.append(LaneBar(bar.x, bar.width, f"{kind} short" if short else kind, title, shown))
    return bars
