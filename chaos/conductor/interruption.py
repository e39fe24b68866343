"""Decides what an interrupt (Ctrl-C, SIGTERM) does to a run, by its phase. Owns no signal handler and no task."""

from __future__ import annotations

from verifier.evidence.phases import LOAD_STARTS, START

#: The phases before the load flows, in which there is nothing to read back yet.
_NOTHING_YET = (START, LOAD_STARTS)


class Interruption:
    """The interrupts of one run.

    The first interrupt ends load and faults early; all that was acknowledged is read back and judged. The run stops at
    once instead if there is nothing to judge yet, if it will not be judged, or at the second interrupt.
    """

    def __init__(self, *, is_judged: bool) -> None:
        self._is_judged = is_judged
        self._came = self._stops = False

    def stops_now(self, phase: str) -> bool:
        """Note another interrupt. Returns whether the run must stop at once; True only once."""
        is_first, self._came = not self._came, True
        if self._stops or (is_first and self._is_judged and phase not in _NOTHING_YET):
            return False
        self._stops = True
        return True
