"""Runs a schedule: each injection through its whole life, recorded in ``faults.jsonl`` as it happens.

Owns the order of steps and the record. What a fault does is its own; whether the run was effective is judged by
the verifier from the record.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from chaos.faults.base import ClusterUnderTest, Fault, PreconditionMissing, Probe
from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection, Schedule
from cluster.seams.clock import Clock
from cluster.seams.randomness import derive
from cluster.seams.units import ms_of_seconds, ns_of_ms, seconds_of_ms, seconds_of_ns
from verifier.evidence.live import MOST_PAST, ActiveFault, PastFault
from verifier.evidence.probes import probe_words

logger = logging.getLogger(__name__)

#: How long a fault may wait for its precondition before it is skipped.
PRECONDITION_MS = 8_000
#: Between two looks whether the precondition holds: nothing signals it, and each look asks the cluster.
RETRY_S = 0.2
#: Tries, in all, of a kind of fault that has not bitten when the time limit is over.
MOST_TRIES = 3


class NotHealed(Exception):
    """A fault could not be undone: the cluster is not what the rest of the run needs. Names the fault and the error."""


class FaultLines(Protocol):
    """Where the record goes: a storage, or a wrapper that also reports it."""

    def append_line(self, path: str, line: str) -> None:
        """Append the line to the file."""
        ...


class Injector:
    """Injects, probes, heals, probes again. ``active`` names what is broken now, for the live line.

    ``lasting`` and ``past`` tell more, to anyone who shows it; ``changed`` is called whenever one of them is another.
    """

    def __init__(
        self,
        cluster: ClusterUnderTest,
        clock: Clock,
        storage: FaultLines,
        record_path: str,
        note: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._storage = storage
        self._record_path = record_path
        self._note = note
        self._changed = changed
        self._broken: list[Fault] = []
        self._numbers: dict[Fault, int] = {}
        self._lasting: dict[Fault, ActiveFault] = {}
        self.past: deque[PastFault] = deque(maxlen=MOST_PAST)
        self.effective = 0
        self.done = 0
        self.left_out = 0
        self._bit: set[str] = set()

    @property
    def active(self) -> str:
        """What is broken now."""
        return ", ".join(fault.name for fault in self._broken)

    @property
    def lasting(self) -> tuple[ActiveFault, ...]:
        """The faults that are not over, those whose recovery is being watched among them; the oldest first."""
        return tuple(self._lasting.values())

    async def run(self, schedule: Schedule, load_started_ms: int, until_ms: float = math.inf) -> None:
        """Work the schedule off.

        On a slow machine faults take longer than planned, and those after them come late. Past ``until_ms`` only
        kinds that have not bitten yet are injected, each a few times at most; the others are left out, and said to be.

        Raises ValueError for a schedule whose seed is still open, and NotHealed for the first fault that could not be
        undone; what else is broken then is ``heal_all``'s.
        """
        seed = schedule.seed
        if seed is None:
            raise ValueError("a schedule needs a seed to be played; this one has none")
        try:
            async with asyncio.TaskGroup() as group:
                running: set[asyncio.Task[None]] = set()
                tried: Counter[str] = Counter()
                for index, injection in enumerate(schedule.injections):
                    wait_ms = load_started_ms + ms_of_seconds(injection.at_s) - self._clock.monotonic_ms()
                    if wait_ms > 0:
                        await asyncio.sleep(seconds_of_ms(wait_ms))
                    if not injection.overlap and running:
                        await asyncio.wait(running)
                        running.clear()
                    enough = injection.fault in self._bit or tried[injection.fault] >= MOST_TRIES
                    if self._clock.monotonic_ms() >= until_ms and enough:
                        self.left_out += 1
                        self._leave_out(index, injection)
                        continue
                    tried[injection.fault] += 1
                    running.add(group.create_task(self.inject(seed, index, injection)))
            if self.left_out:
                self._note(f"{self.left_out} planned faults were left out: the time was up, and their kinds had bitten")
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    async def heal_all(self) -> None:
        """Undo what was cut short by an interrupt or an error, the newest first. One that fails stops no other."""
        while self._broken:
            fault = self._broken.pop()
            try:
                await fault.heal()
            except Exception as error:
                logger.exception("healing %s failed", fault.name)
                self._over(fault, "not healed", str(error))
        for fault in tuple(self._lasting):
            self._over(fault, "cut short")

    async def inject(self, seed: int, index: int, injection: Injection) -> None:
        """One injection, from its target to its healing; ``index`` is its number in the record. Raises NotHealed."""
        fault = FAULTS[injection.fault](injection, self._cluster, self._clock, derive(seed, "fault", index))
        self._numbers[fault] = index
        target = await self._choose(fault)
        if target is None:
            return
        self._note(f"fault {injection.fault}: {target}")
        start_ns = self._clock.monotonic_ns()
        self._broken.append(fault)
        self._lasts(fault, ActiveFault(fault.name, target, start_ns))
        during = Probe(False, {"error": "not injected"})
        try:
            await fault.inject()
            during = await fault.bites()
            self._record(fault, target, "inject", start_ns, during, during.effective)
            held_s = seconds_of_ns(self._clock.monotonic_ns() - start_ns)
            await asyncio.sleep(max(0.0, injection.duration_s - held_s))
        except Exception as error:
            logger.exception("fault %s on %s failed", injection.fault, target)
            self._record(fault, target, "inject", start_ns, Probe(False, {"error": repr(error)}), False)
        heal_ns = self._clock.monotonic_ns()
        try:
            await fault.heal()
            self._broken.remove(fault)
            self._lasts(fault, replace(self._lasting[fault], healed=True))
            after = await fault.gone()
        except Exception as error:
            failed = Probe(False, {"error": repr(error)})
            self._record(fault, target, "heal", heal_ns, failed, during.effective, healed=False)
            self._over(fault, "not healed", str(error))
            raise NotHealed(f"{injection.fault} on {target} could not be healed: {error}") from error
        effective = fault.bit(during, after)
        self._record(fault, target, "heal", heal_ns, after, effective, healed=after.effective)
        self.done += 1
        self.effective += effective
        if effective:
            self._bit.add(injection.fault)
        effect = "bit" if effective else "did not bite"
        self._note(f"  {injection.fault} {effect}; {_sentence(after)}")
        self._over(fault, effect, _sentence(after))

    async def _choose(self, fault: Fault) -> str | None:
        """The target, waiting for the precondition; None and a record if it never comes."""
        start_ns = self._clock.monotonic_ns()
        while True:
            try:
                return await fault.choose()
            except PreconditionMissing as reason:
                if self._clock.monotonic_ns() - start_ns > ns_of_ms(PRECONDITION_MS):
                    self._note(f"fault {fault.name} skipped: {reason}")
                    self._record(fault, "none", "skip", start_ns, Probe(False, {"reason": str(reason)}), False)
                    self.done += 1
                    self._lasts(fault, ActiveFault(fault.name, "none", start_ns))
                    self._over(fault, "skipped", str(reason))
                    return None
            await asyncio.sleep(RETRY_S)

    def _lasts(self, fault: Fault, now: ActiveFault) -> None:
        self._lasting[fault] = now
        self._changed()

    def _over(self, fault: Fault, effect: str, detail: str = "") -> None:
        was = self._lasting.pop(fault, None)
        if was is None:
            return
        self.past.append(PastFault(was.fault, was.target, was.since_ns, self._clock.monotonic_ns(), effect, detail))
        self._changed()

    def _leave_out(self, number: int, injection: Injection) -> None:
        """Every planned injection is accounted for, those that there was no time for as well."""
        now_ns = self._clock.monotonic_ns()
        self._write(number, injection.fault, "none", "left-out", injection.at_s, now_ns, {}, effective=False)

    def _record(
        self,
        fault: Fault,
        target: str,
        phase: str,
        start_ns: int,
        probe: Probe,
        effective: bool,
        healed: bool | None = None,
    ) -> None:
        seen, at_s = dict(probe.seen), fault.injection.at_s
        number = self._numbers[fault]
        self._write(number, fault.name, target, phase, at_s, start_ns, seen, effective=effective, healed=healed)

    def _write(
        self,
        number: int,
        fault: str,
        target: str,
        phase: str,
        planned_s: float,
        start_ns: int,
        probe: dict[str, Any],
        *,
        effective: bool,
        healed: bool | None = None,
    ) -> None:
        entry: dict[str, Any] = {
            "number": number,
            "fault": fault,
            "target": target,
            "phase": phase,
            "planned_s": planned_s,
            "start_ns": start_ns,
            "end_ns": self._clock.monotonic_ns(),
            "probe": probe,
            "effective": effective,
        }
        if healed is not None:
            entry["healed"] = healed
        self._storage.append_line(self._record_path, json.dumps(entry))


def _sentence(probe: Probe) -> str:
    seen = probe_words(probe.seen)
    return ("healed" if probe.effective else "NOT HEALED") + (f": {seen}" if seen else "")
