"""Conducts runs in child processes, one after the other: starts each, waits for it, and ends it in order on Ctrl-C.

Does not own which run is next or what it showed: callers do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from chaos.conductor.progress import Progress
from cluster.process.supervisor import Child, Supervisor
from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_seconds, seconds_of_ms

#: Time between two checks of a run's process, which takes about a minute.
LOOK_EVERY_S = 0.5
#: How long an interrupted run may take to heal, read back what was written, and judge it.
INTERRUPTED_S = 300.0


class ChildRuns:
    """Conducts one run at a time.

    ``insistent`` says whether a second interrupt came; then the current run is interrupted a second time, too.
    ``interrupted`` tells the user what an interrupt does to the current run.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        clock: Clock,
        progress: Progress,
        insistent: Callable[[], bool] = lambda: False,
        *,
        interrupted: str = "the current run ends early and heals (Ctrl-C again stops it at once)",
    ) -> None:
        self._supervisor = supervisor
        self._clock = clock
        self._progress = progress
        self._insistent = insistent
        self._interrupted = interrupted

    def conduct(self, name: str, argv: Sequence[str], log: Path, left: Callable[[float], str]) -> int:
        """Run a command to its end; returns its exit status.

        ``left`` gets the seconds that the command has taken so far, and returns a text on how much is left in all. A
        KeyboardInterrupt lets the run heal and end early, and is then raised again.
        """
        started_ms = self._clock.monotonic_ms()
        try:
            child = self._supervisor.start_program(name, argv, None, None, str(log))
            while (status := child.wait(LOOK_EVERY_S)) is None:
                elapsed_s = seconds_of_ms(self._clock.monotonic_ms() - started_ms)
                self._progress.status(f"{name}  {elapsed_s:.0f} s; {left(elapsed_s)}")
        except KeyboardInterrupt:
            self._progress.note(f"interrupted: {self._interrupted}")
            # All children, because the interrupt may have come before ``child`` was assigned.
            for each in self._supervisor.children:
                self._end(each)
            raise
        return status

    def _end(self, child: Child) -> None:
        """Interrupt a run, a second time if the user does, and wait for it up to ``INTERRUPTED_S``.

        If it is stuck, it ends when this process ends.
        """
        if not child.is_running():
            return
        child.interrupt()
        deadline_ms, asked_twice = self._clock.monotonic_ms() + ms_of_seconds(INTERRUPTED_S), False
        while child.wait(LOOK_EVERY_S) is None and self._clock.monotonic_ms() < deadline_ms:
            if self._insistent() and not asked_twice:
                asked_twice = True
                child.interrupt()
