"""Prints a line on stderr now and then during a long wait, so that it does not seem stuck. Does not wait itself."""

from __future__ import annotations

import sys
from collections.abc import Callable

from cluster.process.one_line import printable
from cluster.seams.clock import SystemClock
from cluster.seams.units import seconds_of_ms

#: The time between two lines.
SILENT_MS = 10_000


class LongWait:
    """Reports every ten seconds what the command waits for, since when, and where to look. Call ``look`` often.

    ``say`` gets the line. By default, it goes to stderr.
    """

    def __init__(
        self,
        what: str,
        log_path: str,
        *,
        quiet: bool,
        now_ms: Callable[[], int] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._what, self._log_path, self._quiet = what, log_path, quiet
        self._say = say or _on_stderr
        self._now_ms = now_ms or SystemClock().monotonic_ms
        self._began_ms = self._said_ms = self._now_ms()

    def look(self) -> None:
        """Print the line if it is due."""
        now_ms = self._now_ms()
        if now_ms - self._said_ms < SILENT_MS:
            return
        self._said_ms = now_ms
        if not self._quiet:
            lasted_s = seconds_of_ms(now_ms - self._began_ms)
            self._say(f"{self._what}: {lasted_s:.0f} s so far; the log is {self._log_path}")

    def spoken(self) -> None:
        """Note that something else was printed, so that the line is not due yet."""
        self._said_ms = self._now_ms()


def _on_stderr(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
