"""The tables of the page: faults with their times, unavailability, read lag, regions and partitions. Pure.

Owns their rows and bounds. The rows that are left out are counted, so that the page can say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifier.evidence.probes import probe_words
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import ms_of_ns
from verifier.report.html import duration
from verifier.surroundings.model import Outcomes
from verifier.verdict import Verdict
from verifier.witness.effectiveness import Injected

#: The most partitions with a column in the table of unavailability: those with the longest gaps.
MOST_PARTITIONS = 24


def faults(injected: Sequence[Injected], most: int) -> dict[str, Any]:
    """The faults with the times at which they were injected, healed and over."""
    rows = [
        {
            "fault": each.fault,
            "target": each.target,
            "start_ns": each.start_ns,
            "healed_ns": each.healed_ns,
            "over_ns": each.end_ns,
            "took": ""
            if each.healed_ns is None or each.end_ns is None
            else duration(ms_of_ns(each.end_ns - each.healed_ns)),
            "state": each.effect,
            "seen": probe_words(each.probe),
            "seen_after": probe_words(each.heal_probe),
        }
        for each in injected[:most]
    ]
    return {"rows": rows, "more": len(injected) - len(rows)}


def unavailability(verdict: Verdict, most: int) -> dict[str, Any] | None:
    """The longest time without an acknowledgement, by fault (rows) and partition (columns); None if it is unknown."""
    entries = verdict.availability.get("faults") or []
    if not entries:
        return None
    worst: dict[str, float] = {}
    for entry in entries:
        for name, gap in entry["partitions"].items():
            worst[name] = max(worst.get(name, 0.0), gap["longest_gap_ms"])
    names = sorted(sorted(worst, key=lambda name: (-worst[name], name))[:MOST_PARTITIONS], key=_natural)
    top = max(worst.values(), default=0.0)
    rows = []
    for entry in entries[:most]:
        cells = [_gap_cell(entry["partitions"].get(name), top) for name in names]
        rows.append({"fault": entry["fault"], "target": entry["target"], "start_ns": entry["start_ns"], "cells": cells})
    return {"names": names, "rows": rows, "more_rows": len(entries) - len(rows), "more_names": len(worst) - len(names)}


def _gap_cell(gap: Mapping[str, Any] | None, top: float) -> dict[str, str]:
    if gap is None:
        return {"text": "-", "kind": "", "title": ""}
    longest = float(gap["longest_gap_ms"])
    kind = "h3" if longest > 0.66 * top else "h2" if longest > 0.33 * top else "h1" if longest > 0.1 * top else ""
    if not gap.get("ever_acknowledged", True):
        return {"text": f"never ({duration(longest)})", "kind": "h3", "title": "nothing was ever acknowledged in it"}
    if not gap.get("ended", True):
        return {"text": f"{duration(longest)}, to the end", "kind": "h3", "title": "no more acknowledgements came"}
    return {"text": duration(longest), "kind": kind, "title": ""}


def _natural(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return (topic, int(partition)) if partition.isascii() and partition.isdecimal() else (name, -1)


def read_lag(verdict: Verdict, most: int) -> list[tuple[str, list[str]]]:
    """For each partition: the median, 99th percentile and maximum of the time from acknowledgement to delivery."""
    lag = (verdict.stats.get("read_lag") or {}).get("partitions")
    if not isinstance(lag, Mapping):
        return []
    rows = []
    for name in sorted((str(name) for name in lag), key=_natural)[:most]:
        figures = lag[name]
        if isinstance(figures, Mapping):
            values = [figures.get(key) for key in ("p50_ms", "p99_ms", "worst_ms")]
            rows.append((name, ["-" if value is None else duration(float(value)) for value in values]))
    return rows


def regions(verdict: Verdict, outcomes: Outcomes | None) -> list[dict[str, Any]]:
    """The load's values by whether they were acknowledged, are in the log, and were read at the end, in words.

    A value that was reserved but never passed to a client is not lost. It is listed separately from values that were
    sent without success.
    """
    rows: list[dict[str, Any]] = []
    for region in verdict.stats.get("regions", []):
        key = (region["acked"], region["in_log"], region["read"])
        if key != (False, False, False) or outcomes is None:
            rows.append({"told": _MEANING[key][0], "words": _MEANING[key][1], "values": region["values"]})
    acked = verdict.stats.get("acked")
    if acked and not any(region["acked"] for region in verdict.stats.get("regions", [])):
        words = "where they are is not known: there was nothing complete to compare them with"
        rows.append({"told": "acknowledged", "words": words, "values": acked})
    if outcomes is not None:
        never, failed = outcomes.never_sent, outcomes.failed
        if never:
            words = "reserved, and never handed to a client: not losses"
            rows.append({"told": "never sent", "words": words, "values": never})
        if failed:
            rows.append(
                {"told": "failed", "words": "the client said that it was certainly not written", "values": failed}
            )
    unknown = verdict.stats.get("unknown")
    if unknown:
        words = "no answer came, so each may or may not be in the log; those that are in it count above, too"
        rows.append({"told": "outcome unknown", "words": words, "values": unknown})
    return rows


_MEANING = {
    (True, True, True): ("acknowledged", "in the log, and read at the end"),
    (True, True, False): ("acknowledged", "in the log, not read at the end"),
    (True, False, True): ("acknowledged", "not in the final log, though a final reader had it"),
    (True, False, False): ("acknowledged", "neither in the log nor read at the end"),
    (False, True, True): ("not acknowledged", "in the log anyway, and read at the end"),
    (False, True, False): ("not acknowledged", "in the log anyway, not read at the end"),
    (False, False, True): ("not acknowledged", "not in the log, though a final reader had it"),
    (False, False, False): ("not acknowledged", "neither in the log nor read: never sent, or sent without effect"),
}


def partitions(run: RunModel, verdict: Verdict, most: int) -> dict[str, Any]:
    """The final state of each partition, with its longest gap."""
    gaps = verdict.availability.get("partitions", {})
    rows = []
    for final in run.final[:most]:
        gap = gaps.get(f"{final.topic}-{final.partition}")
        text = "-" if gap is None else duration(gap["longest_gap_ms"])
        never = gap is not None and gap.get("never_acknowledged")
        rows.append({"final": final, "gap": f"never acknowledged ({text})" if never else text})
    return {"rows": rows, "more": len(run.final) - len(rows)}
