"""What an interrupt (Ctrl-C, SIGTERM) means to a run, by the phase in which it comes. Owns no signal and no task."""

from __future__ import annotations

from verifier.evidence.phases import LOAD_STARTS, START

#: Before the load flows there is nothing to read back.
_NOTHING_YET = (START, LOAD_STARTS)


class Interruption:
    """The interrupts of one run. The first one ends load and faults early: all that was acknowledged is read back and
    judged. A run stops where it is if there is nothing to judge yet, if no one will judge it, or if it is asked again.
    """

    def __init__(self, *, is_judged: bool) -> None:
        self._is_judged = is_judged
        self._came = self._stops = False

    def stops_now(self, phase: str) -> bool:
        """One more came: whether the run is to stop where it is, which is said once."""
        is_first, self._came = not self._came, True
        if self._stops or (is_first and self._is_judged and phase not in _NOTHING_YET):
            return False
        self._stops = True
        return True
