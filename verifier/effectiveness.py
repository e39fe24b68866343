"""Whether the faults of a run bit: the rule of design section 6 over ``faults.jsonl``. Pure.

The run is ineffective when a kind of fault that was asked for never bit, or fewer than half of the injections did. A
single fault that did not bite is listed and does not decide. An injection that was skipped, or that has no end, did not
bite unless its record says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Injected:
    """One injection as it happened; times are monotonic.

    The healing began at ``healed_ns``; at ``end_ns`` the cluster was seen to have recovered. Both are None if the fault
    was never healed.
    """

    fault: str
    target: str
    start_ns: int
    end_ns: int | None
    effective: bool
    skipped: bool
    probe: Mapping[str, Any]
    healed_ns: int | None = None


def injections(entries: Iterable[Mapping[str, Any]]) -> list[Injected]:
    """Pair each ``inject`` with its ``heal`` (same fault and target); a ``skip`` stands alone.

    Whether it bit is said by the heal, which knows all of it (a dropped response shows only when the retry came).
    """
    found: list[Injected] = []
    for entry in entries:
        fault, target, phase = str(entry.get("fault")), str(entry.get("target")), entry.get("phase")
        start_ns, end_ns = int(entry.get("start_ns") or 0), int(entry.get("end_ns") or 0)
        effective, probe = bool(entry.get("effective")), dict(entry.get("probe") or {})
        if phase != "heal":
            skipped = phase != "inject"
            found.append(Injected(fault, target, start_ns, None, effective and not skipped, skipped, probe))
            continue
        for index, earlier in enumerate(found):
            if (earlier.fault, earlier.target) == (fault, target) and earlier.end_ns is None and not earlier.skipped:
                probe = {**earlier.probe, **probe}
                found[index] = Injected(fault, target, earlier.start_ns, end_ns, effective, False, probe, start_ns)
                break
    return found


def ineffective(requested: Sequence[str], happened: Sequence[Injected]) -> list[str]:
    """Why the run's faults prove nothing; empty if they do, or if none was asked for."""
    bit = Counter(each.fault for each in happened if each.effective)
    reasons = []
    never = [fault for fault in dict.fromkeys(requested) if not bit[fault]]
    if never:
        reasons.append(f"ineffective: {', '.join(never)} never bit")
    total = len(happened)
    if 2 * sum(bit.values()) < total:
        reasons.append(f"ineffective: {sum(bit.values())} of {total} injected faults bit")
    return reasons
