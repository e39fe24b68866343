"""Whether the faults of a run bit: the rule of docs/faults.md over ``faults.jsonl``. Pure.

The run is ineffective when a kind of fault that was asked for never bit, or fewer than half of the injections did. A
single fault that did not bite is listed and does not decide. An injection that was skipped, or that has no end, did not
bite unless its record says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Of a fault after whose healing the probe did not find the cluster well, neither then nor when all was healed.
NOT_OVER = "not seen to be over"
#: Of one that the probe found to be over only then.
LATE = "seen to be over only when all was healed"


@dataclass(frozen=True, slots=True)
class Injected:
    """One injection as it happened. ``end_ns`` is None if it was never healed; times are monotonic.

    It was healed from ``healed_ns`` on, and over at ``end_ns``, when the cluster was seen to have recovered, or the
    probe gave up (``healed`` says which). Then it looked again, until ``again_ns``, when all was healed; ``late``: it
    saw only then that nothing of the fault was left. ``probe`` is what was seen while it lasted, until ``probed_ns``
    (None if it was skipped), and ``heal_probe`` what was seen afterwards.
    """

    fault: str
    target: str
    start_ns: int
    end_ns: int | None
    effective: bool
    skipped: bool
    probe: Mapping[str, Any]
    number: int = -1
    healed_ns: int | None = None
    healed: bool = True
    heal_probe: Mapping[str, Any] = field(default_factory=dict)
    probed_ns: int | None = None
    again_ns: int | None = None
    late: bool = False

    @property
    def effect(self) -> str:
        """How it went, in words."""
        told = "skipped" if self.skipped else "bit" if self.effective else "did not bite"
        if self.skipped or self.end_ns is None or self.healed:
            return told
        return f"{told}, {LATE if self.late else NOT_OVER}"


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """What ``faults.jsonl`` says: the injections in the order of their beginning, and why it cannot be believed."""

    injected: tuple[Injected, ...] = ()
    complaints: tuple[str, ...] = ()


def fault_record(entries: Iterable[Mapping[str, Any]], planned: int) -> FaultRecord:
    """Join ``inject`` and ``heal`` by the number of the injection.

    Raises ``ValueError`` or ``TypeError`` for a malformed entry. Whether a fault bit is said by the heal, which knows
    all of it (a dropped response shows only when the retry came). Each of the ``planned`` injections has one end:
    healed, skipped, or left out for want of time.
    """
    by_number: dict[int, dict[str, Mapping[str, Any]]] = {}
    complaints: list[str] = []
    for entry in entries:
        number, phase = int(entry.get("number", -1)), str(entry.get("phase"))
        phases = by_number.setdefault(number, {})
        if phase in phases or phase not in ("inject", "heal", "over", "skip", "left-out"):
            complaints.append(f"faults.jsonl has {phase!r} of injection {number} twice, or it is no phase")
        phases.setdefault(phase, entry)
    for number, phases in sorted(by_number.items()):
        if not 0 <= number < planned:
            complaints.append(f"faults.jsonl has an injection {number}; {planned} were planned")
        elif set(phases) not in _ENDS:
            complaints.append(
                f"injection {number} ({_name(phases)}) has {' and '.join(sorted(phases))} and no proper end"
            )
        elif len({_name(phases), *(str(each.get("fault")) for each in phases.values())}) > 1:
            complaints.append(f"injection {number} began and ended as different faults")
    absent = [f"number {number}" for number in range(planned) if number not in by_number]
    if absent:
        complaints.append(f"{len(absent)} of {planned} planned injections left no record: {', '.join(absent)}")
    injected = [_joined(number, phases) for number, phases in by_number.items() if set(phases) & {"inject", "skip"}]
    return FaultRecord(tuple(sorted(injected, key=lambda each: (each.start_ns, each.number))), tuple(complaints))


#: The phases that an injection has in the end.
_ENDS = ({"inject", "heal"}, {"inject", "heal", "over"}, {"skip"}, {"left-out"})


def _name(phases: Mapping[str, Mapping[str, Any]]) -> str:
    return str(next(iter(phases.values())).get("fault"))


def _joined(number: int, phases: Mapping[str, Mapping[str, Any]]) -> Injected:
    begun = phases.get("inject") or phases["skip"]
    heal, again = phases.get("heal"), phases.get("over")
    said = heal or begun
    return Injected(
        fault=str(begun.get("fault")),
        target=str(begun.get("target")),
        start_ns=int(begun.get("start_ns") or 0),
        end_ns=None if heal is None else int(heal.get("end_ns") or 0),
        effective=bool(said.get("effective")) and "skip" not in phases,
        skipped="skip" in phases,
        probe=dict(begun.get("probe") or {}),
        number=number,
        healed_ns=None if heal is None else int(heal.get("start_ns") or 0),
        healed=bool(heal and heal.get("healed")),
        heal_probe=dict((heal or {}).get("probe") or {}),
        probed_ns=int(begun.get("end_ns") or 0) or None if "inject" in phases else None,
        again_ns=None if again is None else int(again.get("end_ns") or 0),
        late=bool(again and again.get("healed")),
    )


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
