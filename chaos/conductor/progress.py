"""Shows the progress of a run on stderr: a live line on a terminal, plain lines elsewhere.

Owns how and how often progress is shown, and some of its wording. Callers decide what is shown. Notes also go to
``run.log``.
"""

from __future__ import annotations

import logging

from rich.console import Console
from rich.status import Status

from chaos.faults.base import Probe
from cluster.process.one_line import printable
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.how_many import how_many
from verifier.evidence.probes import probe_words

logger = logging.getLogger("gapless")

#: Without a terminal, a status is printed at most this often. Phase changes are always printed.
PLAIN_EVERY_MS = 10_000


class Progress:
    """The live line, and the lines that stay. With ``is_silent``, lines are only logged."""

    def __init__(self, clock: Clock, console: Console | None = None, *, is_silent: bool = False) -> None:
        self._clock = clock
        self._is_silent = is_silent
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._live: Status | None = None
        self._phase = ""
        self._started_ms = clock.monotonic_ms()
        self._last_plain_ms = 0

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._is_silent:
            self._live = self._console.status("starting", spinner="dots")
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def phase(self, name: str, detail: str = "") -> None:
        """Announce a new phase."""
        self._phase = name
        self.note(f"{name}{': ' + detail if detail else ''}")
        if self._live is not None:
            self._live.update(name)

    def note(self, text: str) -> None:
        """Print and log a line that stays."""
        elapsed_s = seconds_of_ms(self._clock.monotonic_ms() - self._started_ms)
        logger.info("%s", text)
        if not self._is_silent:
            self._console.print(f"{elapsed_s:7.1f}s  {printable(text)}", markup=False)

    def still(self, text: str) -> None:
        """Say that a wait continues: in the live line, else as a line. The caller decides how often."""
        if self._live is not None:
            self._live.update(f"{self._phase}  {printable(text)}")
        else:
            self.note(text)

    def status(self, text: str) -> None:
        """Show what is happening now: replaces the live line, or is printed at most every ten seconds."""
        if self._live is not None:
            self._live.update(f"{self._phase}  {text}")
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._last_plain_ms >= PLAIN_EVERY_MS:
            self._last_plain_ms = now_ms
            self.note(f"{self._phase}  {text}")


def under_load(active: str, elapsed_s: float, whole_s: float, counts: str) -> str:
    """The status while faults are injected.

    ``active`` names the current faults, ``counts`` is the load's own line. The faults come first, because a narrow
    terminal cuts off the end.
    """
    fault = f"fault: {active}  " if active else ""
    over = f" (over its time: waiting for {active or 'the last fault'} to end)" if elapsed_s >= whole_s + 1 else ""
    return f"{fault}{elapsed_s:.0f}/{whole_s:.0f} s{over}  {counts}"


def left_out_words(count: int, *, ended_early: bool) -> str:
    """A line on how many planned faults a run left out, and why."""
    was, kinds = ("was", "its kind") if count == 1 else ("were", "their kinds")
    why = "the run ended early" if ended_early else f"the time was up, and {kinds} had bitten"
    return f"{how_many(count, 'planned fault')} {was} left out: {why}"


def healed_words(after: Probe) -> str:
    """What a fault's second probe saw, and whether the fault is over."""
    seen = probe_words(after.seen)
    return ("healed" if after.effective else "NOT HEALED") + (f": {seen}" if seen else "")
