"""The writer of a producer user in a load of the kind ``streams``, which writes one stream.

Owns only its pacing: at a rate, or as fast as records are acknowledged. The recorder reports requests to Locust when
acknowledgements arrive.
"""

from __future__ import annotations

from loadgen.pace import OpenSchedule, staggered_start_ns
from loadgen.users.process import LoadProcess

#: The least time between two calls, so that many users do not spend their time with switching.
MIN_TICK_NS = 2_000_000
MAX_TICK_NS = 50_000_000
#: How long to wait if the client does not accept a record now.
FULL_NS = 5 * MIN_TICK_NS
#: The most records in one call, so that a producer that is behind catches up without starving the others.
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
        """Send records that are due, at most ``BURST``. Returns the ns until the next call."""
        return self._send_some(now_ns)

    def finish(self) -> None:
        """Wait for outstanding records, and close the stream."""
        self._process.backlogs.pop(self._stream.number, None)
        self._process.finish(self._stream)

    def _fill(self, now_ns: int) -> int:
        """Without a rate: send as many records as there is room for, at most ``BURST``.

        The intended time of a record is when it is sent. Returns the ns until the next call.
        """
        stream = self._stream
        room = min(BURST, self._process.settings.outstanding - stream.outstanding)
        for _ in range(room):
            if not stream.send(self._clock.monotonic_ns()):
                return FULL_NS
        return 0 if room == BURST else MIN_TICK_NS

    def _send_due(self, now_ns: int) -> int:
        """With a rate: send the records that are due, at most ``BURST``. Returns the ns until the next call."""
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
