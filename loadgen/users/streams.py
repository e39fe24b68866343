"""What a producer user does in a load of the kind ``streams``: write one stream.

Owns pacing, at its rate or as fast as it is acknowledged, and nothing else. The requests that Locust counts are fired
by the recorder when acknowledgements arrive.
"""

from __future__ import annotations

from loadgen.pace import OpenSchedule, staggered_start_ns
from loadgen.users.process import LoadProcess

#: Records are handed over in ticks, at least so far apart, so that many users do not spend their time switching.
MIN_TICK_NS = 2_000_000
MAX_TICK_NS = 50_000_000
#: The client takes no more just now: how long until it is offered the next record.
FULL_NS = 5 * MIN_TICK_NS
#: Most records between two switches: a producer that is behind catches up without starving the others.
BURST = 200


class StreamWriter:
    """Writes one stream to one partition."""

    def __init__(self, process: LoadProcess, bootstrap: str) -> None:
        self._process = process
        settings = process.settings
        self._clock = process.clock
        (number,) = process.next_numbers(1)
        self._stream = process.new_stream(bootstrap, number)
        rate = settings.rate_per_producer
        start_ns = staggered_start_ns(self._clock.monotonic_ns(), self._stream.number, settings.producers, rate)
        self._schedule = OpenSchedule(start_ns, rate, settings.rate_shape)
        self._sent = 0
        self._send_some = self._fill if settings.outstanding else self._send_due

    def write_due(self, now_ns: int) -> int:
        """Send what is due now, at most a burst; nanoseconds until the next look."""
        return self._send_some(now_ns)

    def finish(self) -> None:
        """Wait for what is outstanding, and close the stream."""
        self._process.backlogs.pop(self._stream.number, None)
        self._process.finish(self._stream)

    def _fill(self, now_ns: int) -> int:
        """Send as many as there is room for, at most a burst, each intended for the time at which it is sent."""
        stream = self._stream
        room = min(BURST, self._process.settings.outstanding - stream.outstanding)
        for _ in range(room):
            if not stream.send(self._clock.monotonic_ns()):
                return FULL_NS
        return 0 if room == BURST else MIN_TICK_NS

    def _send_due(self, now_ns: int) -> int:
        """Send what is due by now, at most a burst; nanoseconds until the next look."""
        schedule, stream = self._schedule, self._stream
        due = schedule.due_count(now_ns)
        last = min(due, self._sent + BURST)
        while self._sent < last and stream.send(schedule.due_ns(self._sent)):
            self._sent += 1
        self._process.backlogs[self._stream.number] = due - self._sent
        if self._sent < last:
            return FULL_NS
        if self._sent < due:
            return 0
        return min(MAX_TICK_NS, max(MIN_TICK_NS, schedule.due_ns(self._sent) - now_ns))
