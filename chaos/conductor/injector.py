"""Plays a schedule: injects each fault, probes it, heals it, probes again, and records every step in ``faults.jsonl``.

Owns the order of these steps and their times. Does not own what a fault does (``chaos.faults``) or the form of the
record (``chaos.conductor.fault_lines``). The verifier judges from the record whether the run was effective.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from chaos.conductor.fault_lines import FaultLines, FaultSink
from chaos.conductor.progress import healed_words, left_out_words
from chaos.faults.base import Fault, PreconditionMissing, Probe
from chaos.faults.catalogue import FAULTS
from chaos.faults.under_test import ClusterUnderTest
from chaos.schedules.model import Injection, Schedule
from cluster.seams.clock import Clock
from cluster.seams.randomness import derive
from cluster.seams.units import ms_of_seconds, ns_of_ms, seconds_of_ms, seconds_of_ns
from verifier.evidence.live import MOST_PAST, ActiveFault, PastFault

logger = logging.getLogger(__name__)

#: How long a fault may wait for its precondition before it is skipped.
PRECONDITION_MS = 8_000
#: How often the precondition is checked: nothing signals it, and each check asks the cluster.
RETRY_S = 0.2
#: After the time limit, a kind of fault that has not bitten is injected until it was tried this often.
MOST_TRIES = 3
#: A replayed injection chooses its target this long before it is due, because a stopped broker makes that slow.
EARLY_MS = 1_500
#: It chooses again this long before it is due, because another broker may lead by then.
AGAIN_MS = 300


class NotHealed(Exception):
    """A fault could not be undone, so the run cannot continue. The message names the fault and the error."""


class Injector:
    """Plays schedules and single injections. ``done`` counts the faults that ended, ``effective`` those that bit.

    ``lasting`` and ``past`` have the details for display; ``changed`` is called whenever one of them changes.
    """

    def __init__(
        self,
        cluster: ClusterUnderTest,
        clock: Clock,
        storage: FaultSink,
        record_path: str,
        note: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._lines = FaultLines(storage, record_path, clock)
        self._note = note
        self._changed = changed
        self._broken: list[Fault] = []
        self._waited: set[Fault] = set()
        self._asked_ns: dict[Fault, int] = {}
        self._lasting: dict[Fault, ActiveFault] = {}
        self._unseen: list[tuple[Fault, str, bool]] = []
        self.past: deque[PastFault] = deque(maxlen=MOST_PAST)
        self.effective = 0
        self.done = 0
        self.left_out = 0
        self._bit: set[str] = set()
        self._early = asyncio.Event()

    @property
    def active(self) -> str:
        """The names of the faults that last now, comma-separated, for the live line."""
        return ", ".join(fault.name for fault in self._broken)

    @property
    def lasting(self) -> tuple[ActiveFault, ...]:
        """The faults that are not over, oldest first, including those whose recovery is still being probed."""
        return tuple(self._lasting.values())

    async def run(self, schedule: Schedule, load_started_ms: int, until_ms: float = math.inf) -> None:
        """Play the schedule.

        On a slow machine, faults take longer than planned, which delays later ones. After ``until_ms``, only kinds that
        have not bitten yet are injected, until each was tried ``MOST_TRIES`` times; the others are left out, which is
        noted. After ``end_early``, everything that has not begun is left out.

        Raises ValueError for a schedule without a seed, and NotHealed for the first fault that could not be undone.
        Then call ``heal_all`` to undo the others.
        """
        seed = schedule.seed
        if seed is None:
            raise ValueError("a schedule needs a seed to be played; this one has none")
        try:
            async with asyncio.TaskGroup() as group:
                running: set[asyncio.Task[None]] = set()
                tried: Counter[str] = Counter()
                for index, injection in enumerate(schedule.injections):
                    due_ms = load_started_ms + ms_of_seconds(injection.at_s)
                    if injection.replays is not None:
                        await self._until(due_ms - EARLY_MS)
                        if self._left_out_early(index, injection):
                            continue
                        running.add(group.create_task(self._replay(seed, index, injection, due_ms)))
                        continue
                    await self._until(due_ms)
                    if not injection.overlap and running:
                        await asyncio.wait(running)
                        running.clear()
                    if self._left_out_early(index, injection):
                        continue
                    enough = injection.fault in self._bit or tried[injection.fault] >= MOST_TRIES
                    if self._clock.monotonic_ms() >= until_ms and enough:
                        self._leave_out(index, injection)
                        continue
                    tried[injection.fault] += 1
                    running.add(group.create_task(self.inject(seed, index, injection)))
            if self.left_out:
                self._note(left_out_words(self.left_out, ended_early=self._early.is_set()))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    def end_early(self) -> None:
        """Inject nothing more and heal what is broken. ``run`` returns when that is done and recorded."""
        self._early.set()

    def _left_out_early(self, index: int, injection: Injection) -> bool:
        if not self._early.is_set():
            return False
        self._leave_out(index, injection)
        return True

    def _leave_out(self, index: int, injection: Injection) -> None:
        self.left_out += 1
        self._lines.leave_out(index, injection)

    async def heal_all(self) -> None:
        """Undo the faults that an interrupt or an error cut short, newest first. If one fails, the others continue."""
        while self._broken:
            fault = self._broken.pop()
            try:
                await fault.heal()
            except Exception as error:
                logger.exception("healing %s failed", fault.name)
                self._over(fault, "not healed", str(error))
        for fault in tuple(self._lasting):
            self._over(fault, "cut short")

    async def look_again(self) -> None:
        """After everything was healed, probe those faults again whose end the second probe did not see in time."""
        while self._unseen:
            fault, target, effective = self._unseen.pop(0)
            start_ns = self._clock.monotonic_ns()
            after = await self._looked(fault, target)
            self._lines.looked_again(fault, target, start_ns, after, effective=effective)
            self._note(f"fault {fault.name} on {target}, looked at again: {healed_words(after)}")

    async def _looked(self, fault: Fault, target: str) -> Probe:
        """Run the second probe. If it raises, it counts as one that did not see the fault's end."""
        try:
            return await fault.gone()
        except Exception as error:
            logger.exception("looking again at %s on %s failed", fault.name, target)
            return Probe(False, {"error": repr(error)})

    async def inject(self, seed: int, index: int, injection: Injection) -> None:
        """Run one injection, from choosing its target to its healing. ``index`` is its number. Raises NotHealed."""
        fault = self._fault(seed, index, injection)
        target = await self._choose(fault)
        if target is not None:
            await self._strike(fault, target)

    async def _replay(self, seed: int, index: int, injection: Injection, due_ms: float) -> None:
        """Like ``inject``, but inject exactly when it is due, or later if there is nothing to break by then."""
        fault = self._fault(seed, index, injection)
        due_ns = ns_of_ms(int(due_ms))
        target = await self._choose(fault, due_ns)
        if target is not None and self._clock.monotonic_ms() <= due_ms:
            await self._until(due_ms - AGAIN_MS)
            again = self._fault(seed, index, injection)
            fault, target = await self._chosen_again(again, fault, target, due_ns)
            await self._until(due_ms)
        if target is not None and not self._left_out_early(index, injection):
            await self._strike(fault, target)

    async def _chosen_again(self, again: Fault, fault: Fault, target: str, due_ns: int) -> tuple[Fault, str | None]:
        """Choose the target again, and wait if it is gone; keep the first choice if that takes until it is due."""
        try:
            async with asyncio.timeout(seconds_of_ns(max(0, due_ns - self._clock.monotonic_ns()))):
                return again, await again.choose()
        except TimeoutError:
            return fault, target
        except PreconditionMissing:
            return again, await self._choose(again, due_ns)

    def _fault(self, seed: int, index: int, injection: Injection) -> Fault:
        drawn_as = index if injection.replays is None else injection.replays
        fault = FAULTS[injection.fault](injection, self._cluster, self._clock, derive(seed, "fault", drawn_as))
        self._lines.numbers[fault] = index
        self._asked_ns[fault] = self._clock.monotonic_ns()
        return fault

    async def _until(self, due_ms: float) -> None:
        wait_ms = due_ms - self._clock.monotonic_ms()
        if wait_ms > 0:
            await self.pause(seconds_of_ms(wait_ms))

    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until ``end_early`` is called."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._early.wait(), seconds)

    async def _strike(self, fault: Fault, target: str) -> None:
        injection = fault.injection
        self._note(f"fault {injection.fault}: {target}")
        start_ns = self._clock.monotonic_ns()
        self._broken.append(fault)
        self._lasts(fault, ActiveFault(fault.name, target, start_ns))
        during, has_failed = Probe(False, {"error": "not injected"}), False
        try:
            await fault.inject()
            during = await fault.bites()
            self._begun(fault, target, start_ns, during)
            held_s = seconds_of_ns(self._clock.monotonic_ns() - start_ns)
            await self.pause(max(0.0, injection.duration_s - held_s))
        except Exception as error:
            has_failed = True
            logger.exception("fault %s on %s failed", injection.fault, target)
            self._begun(fault, target, start_ns, Probe(False, {"error": repr(error), **fault.deeds()}))
        heal_ns = self._clock.monotonic_ns()
        try:
            await fault.heal()
            self._broken.remove(fault)
            self._lasts(fault, replace(self._lasting[fault], healed=True))
            # after a failed injection, this probe may raise because the fault has not noted everything; healing worked
            after = await (self._looked(fault, target) if has_failed else fault.gone())
        except Exception as error:
            failed = Probe(False, {"error": repr(error)})
            self._lines.ended(fault, target, heal_ns, failed, effective=during.effective, healed=False)
            self._over(fault, "not healed", str(error))
            raise NotHealed(f"{injection.fault} on {target} could not be healed: {error}") from error
        effective = fault.bit(during, after)
        self._lines.ended(fault, target, heal_ns, after, effective=effective, healed=after.effective)
        if not after.effective:
            self._unseen.append((fault, target, effective))
        self.done += 1
        self.effective += effective
        if effective:
            self._bit.add(injection.fault)
        effect = "bit" if effective else "did not bite"
        self._note(f"  {injection.fault} {effect}; {healed_words(after)}")
        self._over(fault, effect, healed_words(after))

    def _begun(self, fault: Fault, target: str, start_ns: int, probe: Probe) -> None:
        self._lines.begun(fault, target, start_ns, probe, asked_ns=self._asked_ns[fault], waited=fault in self._waited)

    async def _choose(self, fault: Fault, due_ns: int = 0) -> str | None:
        """Wait until the fault finds a target; return its description.

        If no target is found within ``PRECONDITION_MS`` from now (or after ``due_ns``), record the fault as skipped and
        return None.
        """
        start_ns = max(due_ns, self._clock.monotonic_ns())
        while True:
            try:
                target = await fault.choose()
            except PreconditionMissing as reason:
                self._waited.add(fault)
                if self._clock.monotonic_ns() - start_ns > ns_of_ms(PRECONDITION_MS):
                    self._note(f"fault {fault.name} skipped: {reason}")
                    self._lines.skipped(fault, start_ns, str(reason))
                    self.done += 1
                    self._lasts(fault, ActiveFault(fault.name, "none", start_ns))
                    self._over(fault, "skipped", str(reason))
                    return None
            else:
                if self._clock.monotonic_ns() <= due_ns:
                    self._waited.discard(fault)
                return target
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
