"""The record of the faults of a run, ``faults.jsonl``: a line when one bites or is skipped, and one when it is over.

One that could not be seen to be over gets one more, when it is examined again after everything was healed.
Owns the form of a line. When which is written is the injector's; how they are read is the verifier's, and for a replay
``chaos.replay``'s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from chaos.faults.base import Fault, Probe
from chaos.schedules.model import Injection
from cluster.seams.clock import Clock


class FaultSink(Protocol):
    """Where the record goes: a storage, or a wrapper that also reports it."""

    def append_line(self, path: str, line: str) -> None:
        """Append the line to the file."""
        ...


class FaultLines:
    """The record of one run. ``numbers`` has the number of each fault that is written about."""

    def __init__(self, storage: FaultSink, path: str, clock: Clock) -> None:
        self._storage = storage
        self._path = path
        self._clock = clock
        self.numbers: dict[Fault, int] = {}

    def begun(self, fault: Fault, target: str, start_ns: int, probe: Probe, *, asked_ns: int, waited: bool) -> None:
        """It was injected, and the first probe has looked.

        Its target was looked for from ``asked_ns`` on; ``waited``: at first there was nothing to break.
        """
        more = {"asked_ns": asked_ns, "waited": waited}
        self._of(fault, target, "inject", start_ns, probe.seen, effective=probe.effective, **more)

    def ended(self, fault: Fault, target: str, start_ns: int, probe: Probe, *, effective: bool, healed: bool) -> None:
        """It was healed, or could not be, and the second probe has looked."""
        self._of(fault, target, "heal", start_ns, probe.seen, effective=effective, healed=healed)

    def looked_again(self, fault: Fault, target: str, start_ns: int, probe: Probe, *, effective: bool) -> None:
        """Its second probe had given up, and now that all is healed it has looked again."""
        self._of(fault, target, "over", start_ns, probe.seen, effective=effective, healed=probe.effective)

    def skipped(self, fault: Fault, start_ns: int, reason: str) -> None:
        """There was nothing to break for too long."""
        self._of(fault, "none", "skip", start_ns, {"reason": reason}, effective=False)

    def leave_out(self, number: int, injection: Injection) -> None:
        """Every planned injection is accounted for, those that there was no time for as well."""
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
