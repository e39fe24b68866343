"""``python -m loadgen.sentinel``: writes one acknowledged sentinel to every partition. Owns this task and its command.

A sentinel is a sequenced value with its flag set, of stream ``SENTINEL_STREAM + partition``. Everything that was
acknowledged before it in time lies below its offset in its partition's log, so reading through it reads all of that.
Prints ``{"<partition>": offset or null}``; exit status 0 if no partition is null, 1 otherwise, 254 for bad arguments.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence

from cluster.seams.clock import Clock, SystemClock
from cluster.seams.units import ns_of_seconds, seconds_of_ns
from loadgen.clients.base import SenderFactory, SentResult
from loadgen.recorder import Recorder, StreamIdentity
from loadgen.settings import CONFLUENT, KAFKA_PYTHON, SettingsError
from loadgen.tool import BAD_ARGUMENTS, DONE, INCOMPLETE, parser, put_result, resolve, sender_factory, start_logging
from verifier.evidence.history import HistoryRow
from verifier.evidence.sequenced_value import FLAG_SENTINEL, SENTINEL_STREAM, ValueEncoder

ATTEMPT_TIMEOUT_S = 8.0
PAUSE_S = 0.2
#: The number of sequences to reserve: more attempts than any deadline allows.
RESERVE = 10_000


class Sentinels:
    """Places the sentinels of one topic, attempt after attempt.

    Every attempt is a fresh acks=all producer and, in each partition that still lacks one, the next sequence of its
    sentinel stream. What an attempt left unknown may be in the log and is recorded as ``info``; an acknowledgement
    without an offset is recorded as ``ok`` and tried again, since the offset is what is wanted.
    """

    def __init__(
        self, topic: str, partitions: Sequence[int], run_id: int, make_sender: SenderFactory, recorder: Recorder,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._topic = topic
        self._run_id = run_id
        self._make_sender = make_sender
        self._recorder = recorder
        self._clock = clock
        self.offsets: dict[int, int | None] = dict.fromkeys(partitions)
        self._tried = dict.fromkeys(partitions, 0)

    def place(self, deadline_s: float, pause: Callable[[float], object]) -> bool:
        """Try until every partition has its sentinel (returns True), or the deadline has passed (returns False)."""
        deadline_ns = self._clock.monotonic_ns() + ns_of_seconds(deadline_s)
        for partition in self.offsets:
            self._recorder.reserve(self._identity(partition, 0), 0, RESERVE - 1)
        for attempt in range(RESERVE):
            left_s = seconds_of_ns(deadline_ns - self._clock.monotonic_ns())
            if left_s <= 0 or self._attempt(attempt, min(ATTEMPT_TIMEOUT_S, left_s)):
                break
            pause(PAUSE_S)
        for partition, tried in self._tried.items():
            self._recorder.never_sent(self._identity(partition, 0), tried, RESERVE - 1)
        return None not in self.offsets.values()

    def _attempt(self, attempt: int, timeout_s: float) -> bool:
        """Send a sentinel to each partition that lacks one. Returns whether all have one now."""
        invoke_ns = self._clock.monotonic_ns()
        values = {
            partition: ValueEncoder(self._run_id, SENTINEL_STREAM + partition, flags=FLAG_SENTINEL).encode(
                attempt, invoke_ns
            )
            for partition, offset in self.offsets.items()
            if offset is None
        }
        for partition, result in self._make_sender().send(self._topic, values, timeout_s).items():
            self._record(partition, attempt, invoke_ns, result)
            self._tried[partition] = attempt + 1
            self.offsets[partition] = result.offset
        self._recorder.tick()
        return None not in self.offsets.values()

    def _record(self, partition: int, attempt: int, invoke_ns: int, result: SentResult) -> None:
        offset = -1 if result.offset is None else result.offset
        row = HistoryRow(
            f="sentinel",
            type="ok" if result.acknowledged else "info",
            topic=self._topic,
            partition=partition,
            stream=SENTINEL_STREAM + partition,
            first_sequence=attempt,
            last_sequence=attempt,
            first_offset=offset,
            last_offset=offset,
            invoke_ns=invoke_ns,
            complete_ns=self._clock.monotonic_ns(),
            incarnation=attempt,
            attempt=attempt,
            error=result.error,
            phase="final",
        )
        self._recorder.history.append(row)
        self._recorder.tally.count("acked" if result.acknowledged else "unknown")

    def _identity(self, partition: int, incarnation: int) -> StreamIdentity:
        return StreamIdentity(self._topic, partition, SENTINEL_STREAM + partition, incarnation)

    def __repr__(self) -> str:
        return f"Sentinels({self._topic}, {self.offsets})"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    clients = (CONFLUENT, KAFKA_PYTHON)
    parsed = parser("loadgen.sentinel", "Place one acknowledged sentinel in every partition.", clients).parse_args(argv)
    start_logging()
    try:
        arguments = resolve(parsed)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return BAD_ARGUMENTS
    clock = SystemClock()
    recorder = Recorder(arguments.process, arguments.history, clock)
    settings = arguments.settings
    sentinels = Sentinels(
        settings.topic,
        range(settings.partitions),
        settings.run_id,
        sender_factory(arguments, clock),
        recorder,
        clock,
    )
    try:
        complete = sentinels.place(arguments.deadline_s, threading.Event().wait)
    finally:
        recorder.close()
    put_result({str(partition): offset for partition, offset in sentinels.offsets.items()})
    return DONE if complete else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
