"""ProducerQuota: whether the logs of one broker, all together, may remember one producer more.

Owns the total, how it is counted, and which logs make room when it is reached. Does not own the bound of one log, nor
which of its producers are idle (``producers.py``), nor the answer to the client. Pure: it examines the logs' states.

Anyone can make up producer ids, and each log that a client may write to would remember as many as one log may. Only a
leader's append asks. What a follower copies is counted and never refused: its leader has admitted it. But a marker for
a producer that a log does not know must be written, and a client may ask for very many: beyond half of the room it
leaves nothing in memory, wherever it is written. All that is lost then is a second check of the producer's epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from cluster.log.errors import LogError
from cluster.log.log_ends import MOMENT_MS
from cluster.log.producer_hosts import RESERVED_PART, UNKNOWN, crowds, room_of
from cluster.log.producers import ProducerStates
from cluster.protocol.errors import ErrorCode

#: For all logs of a broker, where nothing else is said: five times as many as one log remembers by default.
MAX_PRODUCERS = 50_000
#: How long a total is believed. What was admitted meanwhile is added to it.
COUNT_MS = 1000
#: Logs make room until this part of the total is free: one eighth; one more if that is reserved.
FREE_PART = 8


class RememberingLog(Protocol):
    """What is examined of a log."""

    @property
    def producers(self) -> ProducerStates: ...

    @property
    def log_end_offset(self) -> int: ...


class ProducerQuota:
    """Room for ``most`` producers in ``logs``, which returns those of this moment. A producer of two logs is two."""

    def __init__(self, most: int, logs: Callable[[], Iterable[RememberingLog]]) -> None:
        self.most = most
        self._logs = logs
        self._count = 0
        self._of_hosts: Counter[str] = Counter()
        self._counted_ms: int | None = None
        self._made_room_ms: int | None = None

    def __repr__(self) -> str:
        return f"ProducerQuota({self._count} of {self.most})"

    def refusal(self, log: RememberingLog, most_of_log: int, monotonic_ms: int, host: str = UNKNOWN) -> str | None:
        """Admit one more producer to ``log``, which knows ``most_of_log`` at most. Else the reason why not."""
        if not log.producers.has_room(most_of_log, log.log_end_offset, monotonic_ms, host):
            return f"{most_of_log} producers wrote here lately, this would be one more{_of(host)}"
        self._count_if_due(monotonic_ms)
        if self._count >= room_of(host, self._of_hosts[host], self.most):
            return (
                f"{self.most} producers wrote to the partitions of this broker lately, "
                f"this would be one more{_of(host)}"
            )
        self._count += 1
        self._of_hosts[host] += 1
        return None

    def admit(self, log: RememberingLog, most_of_log: int, monotonic_ms: int, host: str = UNKNOWN) -> None:
        """Raises ``LogError``: THROTTLING_QUOTA_EXCEEDED, where there is a ``refusal``."""
        refusal = self.refusal(log, most_of_log, monotonic_ms, host)
        if refusal is not None:
            raise LogError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, refusal)

    def marker_came(self, log: RememberingLog, producer_id: int, most_of_log: int, monotonic_ms: int) -> None:
        """``log`` knows nothing of a producer but a marker, which it has just noted: it may have to forget it."""
        self._count_if_due(monotonic_ms)
        if 2 * self._count >= self.most or 2 * len(log.producers) > most_of_log:
            log.producers.forget(producer_id)
        else:
            self._count += 1

    def _count_if_due(self, monotonic_ms: int) -> None:
        if self._counted_ms is None or monotonic_ms - self._counted_ms >= COUNT_MS:
            self._recount(monotonic_ms)

    def _recount(self, monotonic_ms: int) -> None:
        """From the states themselves: producers expire, logs go, and an admitted batch may have come to nothing."""
        logs = list(self._logs())
        self._count = sum(len(log.producers) for log in logs)
        self._of_hosts = Counter()
        for log in logs:
            if log.producers.hosts.counts:
                self._of_hosts.update(log.producers.hosts.counts)
        self._counted_ms = monotonic_ms
        of_crowds = crowds(self._of_hosts, self.most)
        reserved = self.most // RESERVED_PART if of_crowds else 0
        if self._count < self.most - reserved:
            return
        if self._made_room_ms is None or monotonic_ms - self._made_room_ms >= MOMENT_MS:
            self._made_room_ms = monotonic_ms
            is_for_all = self._count >= self.most
            self._make_room(logs, monotonic_ms, reserved, None if is_for_all else of_crowds | {UNKNOWN})

    def _make_room(
        self, logs: list[RememberingLog], monotonic_ms: int, reserved: int, of_hosts: frozenset[str] | None
    ) -> None:
        """Let logs forget their idle producers of these hosts; None: of all. Those with the most begin, so that a log
        with few keeps its own while others have enough that are idle."""
        for log in logs:
            log.producers.note_end(log.log_end_offset, monotonic_ms)
        goal = self.most - reserved - max(1, self.most // FREE_PART)
        for log in sorted(logs, key=lambda log: len(log.producers), reverse=True):
            if self._count <= goal:
                return
            self._count -= log.producers.forget_idle(monotonic_ms, of_hosts)


def _of(host: str) -> str:
    return f" of {host}" if host else ""
