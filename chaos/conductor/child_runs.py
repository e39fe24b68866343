"""Runs as processes of their own, one after the other: started, waited for, and ended well by an interrupt.

Owns that. Which run is next, and what it showed, is its caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from chaos.conductor.progress import Progress
from cluster.process.supervisor import Child, Supervisor
from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_seconds, seconds_of_ms

#: Between two looks at a run's process, which runs for a minute.
LOOK_EVERY_S = 0.5
#: An interrupted run heals, reads back what was written, and may judge it.
INTERRUPTED_S = 300.0


class ChildRuns:
    """``insistent`` says whether a second interrupt came: then what is under way is asked to end a second time.

    ``interrupted`` is what an interrupt does to the current run, for people.
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
        """Run it to its end; its exit status. ``left`` says what is left of all, for people, given its seconds so far.

        KeyboardInterrupt lets it end early and heal, and is raised again.
        """
        started_ms = self._clock.monotonic_ms()
        try:
            child = self._supervisor.start_program(name, argv, None, None, str(log))
            while (status := child.wait(LOOK_EVERY_S)) is None:
                elapsed_s = seconds_of_ms(self._clock.monotonic_ms() - started_ms)
                self._progress.status(f"{name}  {elapsed_s:.0f} s; {left(elapsed_s)}")
        except KeyboardInterrupt:
            self._progress.note(f"interrupted: {self._interrupted}")
            # Not the one named above: the interrupt may have come before it had its name.
            for each in self._supervisor.children:
                self._end(each)
            raise
        return status

    def _end(self, child: Child) -> None:
        """Ask a run to end, again if the user does, and wait for it. What is stuck then ends with us."""
        if not child.is_running():
            return
        child.interrupt()
        deadline_ms, asked_twice = self._clock.monotonic_ms() + ms_of_seconds(INTERRUPTED_S), False
        while child.wait(LOOK_EVERY_S) is None and self._clock.monotonic_ms() < deadline_ms:
            if self._insistent() and not asked_twice:
                asked_twice = True
                child.interrupt()
