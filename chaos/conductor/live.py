"""Writes ``live.json``, which tells the load's web interface what the run does now. Owns its values, and when.

Writes the file at each change and every second, and only if the run has a web interface. Failing to write it does not
affect the run. Does not own the form of the file (``verifier.evidence.live``).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict

from chaos.conductor.injector import Injector
from chaos.conductor.load import Load, LoadStatus
from chaos.conductor.phase import shown_phase
from chaos.conductor.record import RunRecord
from chaos.conductor.workbench import Workbench
from chaos.experiment.experiment import Experiment
from chaos.schedules.model import Schedule
from cluster.seams.units import ns_of_ms
from verifier.evidence.live import LiveState

logger = logging.getLogger(__name__)

#: Often enough for people who watch.
EVERY_S = 1.0


class Live:
    """Keeps ``live.json`` up to date and announces the web interface. In a run without one, does nothing."""

    def __init__(
        self, settings: Experiment, schedule: Schedule, bench: Workbench, record: RunRecord, load: Load
    ) -> None:
        self._settings = settings
        self._schedule = schedule
        self._bench = bench
        self._record = record
        self._load = load
        self._status = LoadStatus()
        self._injector: Injector | None = None
        self._load_started_ns: int | None = None
        self._announced = self._ended = False
        self._complained = False

    def chaos(self, injector: Injector, load_started_ms: int) -> None:
        """Note the injector, and when the load started, from which the times of the schedule count."""
        self._injector = injector
        self._load_started_ns = ns_of_ms(load_started_ms)
        self.write()

    def ended(self) -> None:
        """Tell the user, once, that the web interface has ended with the load. Silent if it was never announced."""
        if self._announced and not self._ended:
            self._ended = True
            self._bench.progress.note(
                f"the web interface has ended with the load; the report will be {self._bench.directory.report_html}"
            )

    async def run(self) -> None:
        """Write the file every second until cancelled."""
        while self._settings.web_port is not None:
            self._status = await self._load.status()
            self.write()
            self._announce()
            await asyncio.sleep(EVERY_S)

    def write(self) -> None:
        """Write the file now, because something has changed."""
        if self._settings.web_port is None:
            return
        try:
            self.state().write(self._bench.directory.live_json)
        except OSError as error:
            if not self._complained:
                logger.warning("the web interface no longer learns what the run does: %s", error)
            self._complained = True

    def state(self) -> LiveState:
        """The current state of the run."""
        model, injector, now_ns = self._record.model, self._injector, self._bench.clock.monotonic_ns()
        injections = self._schedule.injections
        phase, since_ns = shown_phase(
            model.phases,
            started_ns=model.started_ns,
            first_fault_s=injections[0].at_s if injections else None,
            load_since_ns=self._load_started_ns,
            now_ns=now_ns,
        )
        return LiveState(
            name=model.name,
            seed=model.seed,
            started_ns=model.started_ns,
            time_ns=now_ns,
            time_limit_s=self._settings.asked.time_limit_s,
            phase=phase,
            phase_since_ns=since_ns,
            load_since_ns=self._load_started_ns,
            report=str(self._bench.directory.report_html),
            planned=len(injections),
            done=injector.done if injector else 0,
            effective=injector.effective if injector else 0,
            active=injector.lasting if injector else (),
            past=tuple(injector.past) if injector else (),
            load=asdict(self._status),
        )

    def _announce(self) -> None:
        if not self._announced and (address := self._load.web_address()) is not None:
            self._announced = True
            self._bench.progress.note(f"web interface: {address}/?tab=chaos and {address}/gapless/")
