"""``report.html``: one page that needs no network, no script and no other file. Owns what stands on it, and where.

The template has the words and the markup, ``timeline`` the drawing's coordinates, ``html`` what makes it whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verifier import explain
from verifier.anomalies import ANOMALIES, BY_NAME
from verifier.effectiveness import Injected
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint
from verifier.expectation import Expectation
from verifier.facts import Found
from verifier.report.html import number, self_contained
from verifier.report.summary import recovery_text
from verifier.report.timeline import timeline
from verifier.verdict import CheckResult, Verdict

_HERE = Path(__file__).parent

_WORDS = {
    "valid": "Nothing acknowledged was lost, repeated, reordered or damaged, and the evidence is complete.",
    "invalid": "The cluster broke a promise that its settings make.",
    "unknown": "The evidence does not suffice to call this run valid.",
}


def report_html(run: RunModel, injected: Sequence[Injected], verdict: Verdict, series: Sequence[SeriesPoint]) -> str:
    """The page as text."""
    begin_ns = min((point.time_ns - point.interval_ns for point in series), default=run.started_ns)
    return self_contained(
        _HERE,
        "report.html.j2",
        run=run,
        verdict=verdict,
        words=_WORDS[verdict.verdict],
        tiles=_tiles(verdict, injected, series),
        timeline=timeline(run, injected, series, verdict.availability),
        groups=_groups(verdict),
        allowed=_allowed(verdict),
        checks=[(BY_NAME[name], check) for name, check in verdict.checks.items()],
        faults=injected,
        begin_ns=begin_ns,
        started=_moment(run.started),
        expectation=Expectation(run.settings).allowances,
        settings=asdict(run.settings),
        causes={anomaly.name: anomaly.causes for anomaly in ANOMALIES},
    )


def _moment(text: str) -> str:
    """An ISO 8601 time without what nobody reads; anything else as it is."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text


def _tiles(verdict: Verdict, injected: Sequence[Injected], series: Sequence[SeriesPoint]) -> list[tuple[str, str, str]]:
    """The large figures: value, label, small print."""
    stats = verdict.stats
    longest = verdict.availability.get("longest_gap_ms")
    worst = max((point.latency_p99_ms for point in series if point.acked and point.latency_p99_ms), default=None)
    bit = sum(each.effective for each in injected)
    recovered = verdict.availability.get("recoveries") or {}
    return [
        (number(stats.get("acked", 0)), "acknowledged", _beside_the_acknowledged(stats)),
        (
            number(stats.get("read", 0)),
            "read at the end",
            f"{number(stats.get('acked_and_read', 0))} of them acknowledged",
        ),
        (f"{bit} / {len(injected)}" if injected else "none", "faults that bit", "each probed at inject and heal"),
        ("-" if longest is None else _duration(longest), "longest ack gap", "of the worst partition"),
        (
            "-" if not recovered.get("count") else _duration(recovered["longest_ms"]),
            "longest log recovery",
            recovery_text(recovered) if recovered.get("count") else "no broker was killed",
        ),
        ("-" if worst is None else _duration(worst), "worst p99 latency", "from intended send, one second"),
    ]


def _beside_the_acknowledged(stats: Mapping[str, Any]) -> str:
    unknown = f"{number(stats.get('unknown', 0))} of unknown outcome"
    deleted = stats.get("deleted")
    return f"{unknown}; {number(deleted)} deleted by retention or DeleteRecords" if deleted else unknown


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:,.1f} s"


def _groups(verdict: Verdict) -> list[dict[str, Any]]:
    """The anomalies that count, each leader with its consequences under it."""
    groups: list[dict[str, Any]] = []
    forbidden = [check for check in verdict.checks.values() if check.forbidden_count]
    leaders = {check.name: verdict.leader(check.name) for check in forbidden}
    for check in forbidden:
        if leaders[check.name] is None:
            followers = [_card(other) for other in forbidden if leaders[other.name] == check.name]
            groups.append({**_card(check), "followers": followers})
    return groups


def _card(check: CheckResult) -> dict[str, Any]:
    shown = next(example for example in check.examples if not example.allowed)
    places: dict[str, int] = {}
    for example in check.examples:
        if not example.allowed:
            place = f"{example.found.topic}-{example.found.partition}"
            places[place] = places.get(place, 0) + example.found.count
    return {
        "name": check.name,
        "summary": BY_NAME[check.name].summary,
        "count": check.forbidden_count,
        "cause": BY_NAME[check.name].causes.get(shown.found.cause or ""),
        "text": shown.text,
        "rows": evidence_rows(shown.found),
        "told": told_rows(shown.found),
        "places": places,
    }


def _allowed(verdict: Verdict) -> list[dict[str, Any]]:
    """What the settings allow, with its reason, one entry per check and reason."""
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for check in verdict.checks.values():
        for example in check.examples:
            if example.allowed:
                entry = entries.setdefault(
                    (check.name, example.allowed),
                    {"name": check.name, "reason": example.allowed, "count": 0, "text": example.text},
                )
                entry["count"] += example.found.count
    return list(entries.values())


def evidence_rows(found: Found) -> list[dict[str, Any]]:
    """What stands in the final leader's log around an example: before, the copies (or their absence), after."""
    context = found.context
    rows: list[dict[str, Any]] = []
    by_stream = found.stream is not None
    before = context.get("stream_before" if by_stream else "batch_before")
    after = context.get("stream_after" if by_stream else "batch_after")
    if before:
        rows.append(_row("before", before, found, last=True))
    copies = context.get("copies", [])
    rows += [
        _row(f"copy {number}" if len(copies) > 1 else "here", each, found) for number, each in enumerate(copies, 1)
    ]
    if by_stream and not copies:
        rows.append({"role": "missing", "value": explain.value_name(found.stream, found.sequence)})
    if not by_stream:
        here = context.get("value_at") or context.get("batch_at", [])
        rows += [_row("here", each, found) for each in here]
        if not here:
            rows.append({"role": "missing", "value": f"offset {found.offset}"})
    if after:
        rows.append(_row("after", after, found, last=False))
    if len(copies) > 1:
        rows.sort(key=lambda row: row["offset"])
    return rows


def _row(role: str, batch: Mapping[str, Any], found: Found, *, last: bool | None = None) -> dict[str, Any]:
    stream, sequence = batch.get("stream", found.stream), batch.get("sequence", found.sequence)
    offset = batch.get("offset", found.offset if last is None else None)
    if last is not None and "first_sequence" in batch:
        end = "last" if last else "first"
        sequence, offset = batch[f"{end}_sequence"], batch[f"{end}_offset"]
    elif last is not None:
        stream = None
    return {
        "role": role,
        "value": explain.value_name(stream, sequence) if stream is not None else "",
        "offset": offset,
        "batch": f"{batch['base_offset']}..{batch['next_offset'] - 1}",
        "producer": "none" if batch["producer_id"] < 0 else f"{batch['producer_id']} / {batch['producer_epoch']}",
        "base_sequence": "none" if batch["base_sequence"] < 0 else batch["base_sequence"],
        "leader_epoch": batch["leader_epoch"],
        "file": f"b{batch['broker']} {batch['segment']:020d}.log @ {batch['position']}",
    }


def told_rows(found: Found) -> list[dict[str, Any]]:
    """Who was told what: acknowledgements and reads of the value, or all claims on the offset."""
    rows = [
        {"how": "acknowledged", "who": each["process"], "offset": each.get("offset"), "at_ns": each["complete_ns"]}
        for each in found.context.get("acknowledged", [])
    ]
    rows += [
        {
            "how": "read" if each["phase"] == "load" else "read at the end",
            "who": each["process"],
            "offset": each.get("offset"),
            "at_ns": each["complete_ns"],
        }
        for each in found.context.get("read", [])
    ]
    rows += [
        {
            "how": f"{each['how']}: {explain.value_name(each['stream'], each['sequence'])}",
            "who": each["process"],
            "offset": found.offset,
            "at_ns": None,
        }
        for each in found.context.get("claimed", [])
    ]
    return rows
