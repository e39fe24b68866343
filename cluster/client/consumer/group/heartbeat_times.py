"""HeartbeatTimes: when a member is due to show that it is alive, and when it is taken for dead. Kafka's ``Heartbeat``.

Owns session.timeout.ms, heartbeat.interval.ms and max.poll.interval.ms (KIP-62). Does not own what follows. Pure.
"""

from __future__ import annotations


class HeartbeatTimes:
    """NOT thread-safe. Times are milliseconds of one monotonic clock."""

    def __init__(self, session_timeout_ms: int, interval_ms: int, max_poll_interval_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._interval_ms = interval_ms
        self._max_poll_interval_ms = max_poll_interval_ms
        self._session_end_ms = self._next_ms = 0
        #: When max.poll.interval.ms is over.
        self.poll_end_ms = 0

    def __repr__(self) -> str:
        return f"HeartbeatTimes(next at {self._next_ms}, session to {self._session_end_ms}, poll to {self.poll_end_ms})"

    def joined(self, now_ms: int) -> None:
        """The coordinator has just answered that it knows the member."""
        self._session_end_ms = now_ms + self._session_timeout_ms
        self._next_ms = now_ms + self._interval_ms

    def sent(self, now_ms: int) -> None:
        self._next_ms = now_ms + self._interval_ms

    def answered(self, now_ms: int) -> None:
        """A heartbeat has arrived at the coordinator."""
        self._session_end_ms = now_ms + self._session_timeout_ms

    def failed(self, now_ms: int, pause_ms: int) -> None:
        """A heartbeat was sent to no effect: the next one is not to wait for its interval."""
        self._next_ms = now_ms + min(pause_ms, self._interval_ms)

    def polled(self, now_ms: int) -> None:
        """The program has asked for records."""
        self.poll_end_ms = now_ms + self._max_poll_interval_ms

    def is_due(self, now_ms: int) -> bool:
        return self._next_ms <= now_ms

    def is_session_over(self, now_ms: int) -> bool:
        """Whether the coordinator has probably removed the member, as nothing of it is known to have arrived."""
        return self._session_end_ms <= now_ms

    def is_poll_overdue(self, now_ms: int) -> bool:
        return self.poll_end_ms <= now_ms

    def next_ms(self, *, is_sent: bool) -> int:
        """When one of these will change. ``is_sent``: a heartbeat is in flight, for whose end the next has to wait."""
        ends_ms = min(self._session_end_ms, self.poll_end_ms)
        return ends_ms if is_sent else min(ends_ms, self._next_ms)
