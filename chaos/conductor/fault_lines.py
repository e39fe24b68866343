"""``faults.jsonl``, the record of a run's faults: a line when a fault is injected or skipped, one when it is healed.

If the second probe does not see the fault's end, a third line follows when the fault is probed again, after everything
was healed. Owns the form of a line. Does not own when lines are written (``chaos.conductor.injector``) or how they are
read (the verifier, and ``chaos.replay`` for a replay).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from chaos.faults.base import Fault, Probe
from chaos.schedules.model import Injection
from cluster.seams.clock import Clock


class FaultSink(Protocol):
    """Where lines are appended: a storage, or a wrapper that also reports them."""

    def append_line(self, path: str, line: str) -> None:
        """Append the line to the file."""
        ...


class FaultLines:
    """Writes the record of one run. ``numbers`` maps each fault to its number in the schedule, from 0."""

    def __init__(self, storage: FaultSink, path: str, clock: Clock) -> None:
        self._storage = storage
        self._path = path
        self._clock = clock
        self.numbers: dict[Fault, int] = {}

    def begun(self, fault: Fault, target: str, start_ns: int, probe: Probe, *, asked_ns: int, waited: bool) -> None:
        """Record that the fault was injected and what the first probe saw.

        ``asked_ns`` is when the search for a target began. ``waited`` is true if there was nothing to break at first.
        """
        more = {"asked_ns": asked_ns, "waited": waited}
        self._of(fault, target, "inject", start_ns, probe.seen, effective=probe.effective, **more)

    def ended(self, fault: Fault, target: str, start_ns: int, probe: Probe, *, effective: bool, healed: bool) -> None:
        """Record whether the fault could be healed (``healed``) and what the second probe saw."""
        self._of(fault, target, "heal", start_ns, probe.seen, effective=effective, healed=healed)

    def looked_again(self, fault: Fault, target: str, start_ns: int, probe: Probe, *, effective: bool) -> None:
        """Record what another probe saw after everything was healed. The second probe had not seen the fault's end."""
        self._of(fault, target, "over", start_ns, probe.seen, effective=effective, healed=probe.effective)

    def skipped(self, fault: Fault, start_ns: int, reason: str) -> None:
        """Record that the fault was skipped: for too long, there was nothing to break."""
        self._of(fault, "none", "skip", start_ns, {"reason": reason}, effective=False)

    def leave_out(self, number: int, injection: Injection) -> None:
        """Record a planned injection that the run had no time for, so that the record accounts for every one."""
        now_ns = self._clock.monotonic_ns()
        self._write(number, injection.fault, "none", "left-out", injection.at_s, now_ns, {}, effective=False)

    def _of(
        self,
        fault: Fault,
        target: str,
        phase: str,
        start_ns: int,
        seen: Mapping[str, Any],
        *,
        effective: bool,
        **more: object,
    ) -> None:
        number, at_s = self.numbers[fault], fault.injection.at_s
        self._write(number, fault.name, target, phase, at_s, start_ns, seen, effective=effective, **more)

    def _write(
        self,
        number: int,
        fault: str,
        target: str,
        phase: str,
        planned_s: float,
        start_ns: int,
        seen: Mapping[str, Any],
        *,
        effective: bool,
        **more: object,
    ) -> None:
        entry: dict[str, Any] = {
            "number": number,
            "fault": fault,
            "target": target,
            "phase": phase,
            "planned_s": planned_s,
            "start_ns": start_ns,
            "end_ns": self._clock.monotonic_ns(),
            "probe": dict(seen),
            "effective": effective,
            **more,
        }
        self._storage.append_line(self._path, json.dumps(entry))
