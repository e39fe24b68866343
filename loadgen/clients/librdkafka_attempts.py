"""Finds failed attempts and lost connections in librdkafka's log lines and statistics.

Owns the patterns of these lines (as of version 2.16; a test forces a retry and waits for the line). librdkafka's
counters do not include a batch that a broker refused and that is resent. The debugging context ``msg`` logs every
failed attempt, with three lines per batch, which take a few microseconds.

The lines at first call a batch that was refused as out of order a permanent failure, in any case. If librdkafka finds
that an earlier batch of the partition was the cause, another line says so: it raises its producer epoch and resends
everything. Does not own the records' outcomes (``confluent``).
"""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import Callable
from typing import Any

#: The logger for librdkafka's own log lines, which ``poll`` delivers.
client_logger = logging.getLogger("librdkafka")

#: The debugging context of librdkafka that logs every failed attempt.
ATTEMPTS = "msg"
_FAILED_ATTEMPT = re.compile(
    r"\[(?P<partition>\d+)\]: MessageSet with (?P<records>\d+) message\(s\) "
    r"\(MsgId (?P<message_id>\d+), BaseSeq (?P<sequence>-?\d+)\) "
    r"encountered error: (?P<error>.*) \(actions (?P<actions>[^)]*)\)"
)
_OUT_OF_ORDER = "Broker: Broker received an out of order sequence number"
#: A batch that was refused as out of order, and is sent again.
_SKIPPED = re.compile(
    r"\[(?P<partition>\d+)\] with \d+ message\(s\) failed due to skipped sequence numbers "
    r"\(PID\{[^}]*\}, base seq (?P<sequence>\d+) > "
)

#: The error, how many records, the number of the first (1 is the first record that this producer sent to the partition;
#: 0 stands for not told, which is so without idempotence), and the partition.
Attempt = tuple[str, int, int, int]


class AttemptListener:
    """A logger for librdkafka that extracts failed attempts, and passes the lines for users on.

    ``poll`` delivers its lines in one queue with the delivery reports, so a failed attempt is reported before the
    outcome of its records. confluent-kafka calls only ``log``.
    """

    def __init__(self, on_failed_attempt: Callable[[str, int, int, int], None], *, is_debugged: bool) -> None:
        self._on_failed_attempt = on_failed_attempt
        self._is_debugged = is_debugged
        #: Batches refused as out of order, by partition and first sequence. Later, either another line says that the
        #: batch is sent again, or the client ends.
        self._refused: dict[tuple[int, int], Attempt] = {}

    def log(self, level: int, text: str, *arguments: Any) -> None:
        """Handle one line, which has a facility, the client's name and a text."""
        if level > logging.DEBUG or self._is_debugged:
            client_logger.log(level, text, *arguments)
        if len(arguments) == 3:
            failed = self._failed(str(arguments[0]), str(arguments[2]))
            if failed is not None:
                self._on_failed_attempt(*failed)

    def _failed(self, facility: str, line: str) -> Attempt | None:
        """The failed attempt that this line reports, if it may be repeated."""
        if facility == "ERRSEQ":
            batch = skipped(line)
            return None if batch is None else self._refused.pop(batch, None)
        match = _FAILED_ATTEMPT.search(line) if facility == "MSGSET" else None
        if match is None:
            return None
        attempt = match["error"], int(match["records"]), int(match["message_id"]), int(match["partition"])
        # after a broken connection, the line only mentions a refresh, but the attempt is repeated anyway
        if "Permanent" not in match["actions"]:
            return attempt
        if attempt[0] == _OUT_OF_ORDER:
            self._refused[attempt[3], int(match["sequence"])] = attempt
        return None


class KeptLines:
    """A logger for librdkafka that keeps lines from other threads until the thread that polls passes them on.

    Under Locust the locks of logging are greenlets' locks. A thread that waits for one may wait forever.
    """

    def __init__(self, listener: AttemptListener) -> None:
        self._listener = listener
        self._lines: deque[tuple[Any, ...]] = deque()

    def log(self, *line: Any) -> None:
        """Keep one line. May be called in any thread."""
        self._lines.append(line)

    def pass_on(self) -> None:
        """Log the kept lines. To be called in the thread that polls."""
        while self._lines:
            self._listener.log(*self._lines.popleft())


def skipped(line: str) -> tuple[int, int] | None:
    """The partition and first sequence of a batch that was refused as out of order and is sent again, if any."""
    match = _SKIPPED.search(line)
    return None if match is None else (int(match["partition"]), int(match["sequence"]))


class LostConnections:
    """Counts lost connections over which records had been sent, from librdkafka's statistics of each broker.

    A broker whose name the client no longer knows leaves the statistics, so sums over brokers may fall.
    """

    def __init__(self) -> None:
        #: broker -> lost connections, Produce requests at the last statistics, and Produce requests before the current
        #: connection
        self._known: dict[str, tuple[int, int, int]] = {}

    def told(self, statistics: str) -> int:
        """The number of lost connections since the last statistics. Those without a Produce request do not count."""
        lost = 0
        for name, broker in json.loads(statistics).get("brokers", {}).items():
            losses, requests = broker.get("disconnects", 0), broker.get("req", {}).get("Produce", 0)
            losses_then, requests_then, sent_before = self._known.get(name, (0, 0, 0))
            if losses > losses_then:
                lost += min(losses - losses_then, max(requests - sent_before, 0))
                # requests in this interval may have used the next connection
                sent_before = requests_then
            self._known[name] = losses, requests, sent_before
        return lost
