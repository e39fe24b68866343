"""The recorder of one load process, which writes its history, its counts and time series, and informs Locust.

Owns how an observation reaches each of the three. Does not own the observations (``loadgen.stream``,
``loadgen.reading``) or the forms of the files (``verifier.evidence``). For one thread, or the greenlets of one hub.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_ns
from loadgen.spans import PolledRows, SentSpan
from loadgen.tally import Tally
from loadgen.unwritten import name_of
from verifier.evidence.history import Function, HistoryOutcome, HistoryRow, HistoryWriter
from verifier.evidence.run_directory import append_json_line, write_json_atomic
from verifier.evidence.series import SeriesPoint

SERIES_INTERVAL_NS = 1_000_000_000
#: Errors of a stream that differ only in numbers are written at most once in this time. All are counted.
ERROR_INTERVAL_NS = 1_000_000_000

_NUMBERS = re.compile(r"\d+")


class CountedRequest(NamedTuple):
    """One request as Locust counts it: the acknowledgement of a span of records, or a poll that brought some.

    ``latency_ms`` is that of its oldest record, from the intended time of sending; ``latencies_ns`` are those of all
    its records that have one: none of a failed request, and in a poll the values of this run.
    """

    name: str
    latency_ms: float
    records: int
    size_bytes: int
    error: str | None
    latencies_ns: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """What records belong to: the stream, the producer instance that wrote them, and the number of the transaction."""

    topic: str
    partition: int
    stream: int
    incarnation: int
    producer_id: int = -1
    producer_epoch: int = -1
    op: int = -1


def ignore_request(_request: CountedRequest) -> None:
    """Ignore a request, in a process without Locust."""


def no_backlog() -> int:
    """The backlog of a process without a schedule: 0."""
    return 0


class Recorder:
    """Records what one process does. ``status`` and ``series`` are files to keep up, or None for none."""

    def __init__(
        self,
        process: str,
        history: Path,
        clock: Clock,
        *,
        status: Path | None = None,
        series: Path | None = None,
        observer: Callable[[CountedRequest], None] = ignore_request,
        backlog: Callable[[], int] = no_backlog,
    ) -> None:
        self._clock = clock
        self._status, self._series = status, series
        self._observer = observer
        self._backlog = backlog
        self._sessions = itertools.count(1)
        self._ops = itertools.count(1)
        self._noted: dict[tuple[int, str], int] = {}
        self._point_ns = clock.monotonic_ns()
        self.tally = Tally(process, self._point_ns)
        self.history = HistoryWriter(history, process, clock)
        #: error name -> the last text of this error that a producer reported
        self.producer_errors: dict[str, str] = {}

    def next_session(self) -> int:
        """A number for a new assignment, unique in this process, so that those of several readers differ."""
        return next(self._sessions)

    def next_op(self) -> int:
        """A number for a call of a reader. All rows of one poll have the same number."""
        return next(self._ops)

    def reserve(self, who: StreamIdentity, first: int, last: int) -> None:
        """Write that these sequences may be sent, before they are: they may be sent once this returns."""
        now_ns = self._clock.monotonic_ns()
        self.history.append_durably(_stream_row("reserve", "invoke", who, first, last, now_ns, now_ns))

    def incarnation(self, who: StreamIdentity, next_sequence: int, *, known: bool) -> None:
        """Record that a producer instance was created, or (``known``) that its producer id and epoch are known."""
        now_ns = self._clock.monotonic_ns()
        outcome: HistoryOutcome = "ok" if known else "invoke"
        row = _stream_row("incarnation", outcome, who, next_sequence, next_sequence, now_ns, now_ns)
        self.history.append(row)

    def sent(
        self, who: StreamIdentity, spans: Iterable[SentSpan], size_bytes: Callable[[int, int], int], acks: str
    ) -> None:
        """Record the outcomes from one poll of the client. ``size_bytes`` computes the size of a range of sequences."""
        now_ns = self._clock.monotonic_ns()
        for span in spans:
            row = _stream_row("send", span.outcome, who, span.first_sequence, span.last_sequence, 0, now_ns)
            invoke_ns = min(span.intended_ns)
            self.history.append(
                row._replace(
                    invoke_ns=invoke_ns,
                    first_offset=span.first_offset,
                    last_offset=span.last_offset,
                    error=span.error,
                    op=who.op,
                )
            )
            latencies_ns: Sequence[int] = ()
            if span.error is None:
                latencies_ns = [now_ns - intended_ns for intended_ns in span.intended_ns]
                self.tally.count("acked", span.records)
                self.tally.acknowledged(who.partition, now_ns)
                self.tally.latencies(latencies_ns)
            else:
                self.producer_errors[name_of(span.error)] = span.error
                self.tally.count("failed" if span.is_refused else "unknown", span.records)
                self.tally.count("errors")
            name = f"produce:{who.topic}:acks={acks}"
            bytes_in_all = size_bytes(span.first_sequence, span.last_sequence)
            latency_ms = ms_of_ns(now_ns - invoke_ns)
            self._observer(CountedRequest(name, latency_ms, span.records, bytes_in_all, span.error, latencies_ns))

    def never_sent(self, who: StreamIdentity, first: int, last: int) -> None:
        """Record reserved sequences that were certainly never handed to a client."""
        now_ns = self._clock.monotonic_ns()
        self.history.append(_stream_row("unsent", "fail", who, first, last, now_ns, now_ns))

    def retried(self, who: StreamIdentity, first: int, last: int, since_ns: int, records: int, reason: str) -> None:
        """Record that the client resends, or may, ``records`` of these sequences, outstanding since ``since_ns``."""
        self._client_event("retry", who, first, last, since_ns, records, reason)

    def disconnected(
        self, who: StreamIdentity, first: int, last: int, since_ns: int, connections: int, reason: str
    ) -> None:
        """Record that the client lost connections while these sequences were outstanding (-1 and -1 if none)."""
        self._client_event("disconnect", who, first, last, since_ns, connections, reason)

    def _client_event(
        self, f: Function, who: StreamIdentity, first: int, last: int, since_ns: int, count: int, reason: str
    ) -> None:
        now_ns = self._clock.monotonic_ns()
        row = _stream_row(f, "info", who, first, last, min(since_ns, now_ns), now_ns)
        self.history.append(row._replace(count=count, error=reason))

    def polled(self, topic: str, polled: PolledRows, size_bytes: int) -> None:
        """Record the rows of one poll of a reader."""
        for row in polled.rows:
            self.history.append(row)
            self.tally.count("read", row.last_offset - row.first_offset + 1)
        if polled.undecodable:
            self.tally.count("errors", polled.undecodable)
        if polled.rows and polled.send_times_ns:
            complete_ns = polled.rows[-1].complete_ns
            latencies_ns = [complete_ns - sent_ns for sent_ns in polled.send_times_ns]
            self.tally.latencies(latencies_ns)
            records = sum(row.last_offset - row.first_offset + 1 for row in polled.rows)
            self._observer(
                CountedRequest(f"poll:{topic}", ms_of_ns(max(latencies_ns)), records, size_bytes, None, latencies_ns)
            )

    def note(self, text: str, *, who: StreamIdentity | None = None, topic: str = "", session: int = -1) -> None:
        """Record anything else, such as an error of the client, or the reason of a new assignment."""
        now_ns = self._clock.monotonic_ns()
        if who is None:
            row = HistoryRow("note", "info", topic, invoke_ns=now_ns, complete_ns=now_ns)
        else:
            row = _stream_row("note", "info", who, -1, -1, now_ns, now_ns)
        self.history.append(row._replace(error=text, session=session))

    def error(self, text: str, *, who: StreamIdentity | None = None, topic: str = "", session: int = -1) -> None:
        """A note that counts as an error.

        During an outage a client says the same many times a second: it is counted each time, written once a second.
        """
        self.tally.count("errors")
        if who is not None:
            self.producer_errors[name_of(text)] = text
        now_ns = self._clock.monotonic_ns()
        kind = (-1 if who is None else who.stream, _NUMBERS.sub("#", text))
        if now_ns - self._noted.get(kind, -ERROR_INTERVAL_NS) >= ERROR_INTERVAL_NS:
            self._noted[kind] = now_ns
            self.note(text, who=who, topic=topic, session=session)

    def tick(self) -> None:
        """Flush if due; once a second, write the status and a point of the series. Call it several times a second."""
        self.history.flush_if_due()
        if self._clock.monotonic_ns() - self._point_ns >= SERIES_INTERVAL_NS:
            self._write_point()

    def close(self) -> None:
        """Write the last point, and close the history with its end mark. A second call has no effect."""
        if not self.history.closed:
            self.history.close()
            self._write_point()

    def _write_point(self) -> None:
        self._point_ns = self._clock.monotonic_ns()
        point: SeriesPoint = self.tally.point(self._point_ns, self._backlog())
        if self._status is not None:
            write_json_atomic(self._status, point.to_json())
        if self._series is not None:
            append_json_line(self._series, point.to_json())

    def __repr__(self) -> str:
        return f"Recorder({self.history}, {self.tally})"


def _stream_row(
    f: Function, outcome: HistoryOutcome, who: StreamIdentity, first: int, last: int, invoke_ns: int, complete_ns: int
) -> HistoryRow:
    return HistoryRow(
        f,
        outcome,
        who.topic,
        who.partition,
        who.stream,
        first,
        last,
        invoke_ns=invoke_ns,
        complete_ns=complete_ns,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        incarnation=who.incarnation,
    )
