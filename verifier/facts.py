"""Facts of a run, counted: plain values that the pure rules (completeness, verdict) decide on. Owns no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

Place = TypeVar("Place")

#: A reader is one bit of a 64-bit integer in the ledger; more would silently share bits, so they are refused.
MAXIMUM_READERS = 62


@dataclass(frozen=True, slots=True)
class ReaderReach:
    """How far one final reader came in one partition. ``complete``: through the sentinel's acknowledged offset.

    ``is_isolated``: it is handed only what is committed.
    """

    run: str
    process: str
    topic: str
    partition: int
    bit: int
    last_offset: int
    complete: bool
    is_isolated: bool = False


def reader_masks(readers: Iterable[ReaderReach]) -> dict[tuple[str, str, int], int]:
    """By run, topic and partition the bits of those that came through the sentinel."""
    masks: dict[tuple[str, str, int], int] = {}
    for reader in readers:
        if reader.complete:
            key = (reader.run, reader.topic, reader.partition)
            masks[key] = masks.get(key, 0) | reader.bit
    return masks


@dataclass(frozen=True, slots=True)
class ReplicaFiles:
    """What was read of one replica. The walks ended after ``walked_bytes``; the batches sum to ``batch_bytes``.

    ``leader_epoch`` is the highest of any sound batch, -1 if there is none. Of the load's values, of which those of
    leaders alone are read, spans of ``numbered`` ones are in batches with a producer id, an epoch and a sequence; of
    ``unnumbered`` ones in batches that lack one of them.
    """

    broker: int
    topic: str
    partition: int
    files: int
    size_bytes: int
    walked_bytes: int
    batches: int
    batch_bytes: int
    next_offset: int
    leader_epoch: int = -1
    numbered: int = 0
    unnumbered: int = 0


class Untold(NamedTuple):
    """Values of this stream are in batches with this producer id, of which no row of the stream tells."""

    topic: str
    partition: int
    stream: int
    producer_id: int


@dataclass(frozen=True, slots=True)
class Mistimed:
    """Acknowledged rows of one partition whose beginning contradicts their values' send times: how many, and the first.

    The row that begins with ``sequence`` says ``invoke_ns``; its value, or the one next to it that is stored,
    ``sent_ns``.
    """

    topic: str
    partition: int
    count: int
    stream: int
    sequence: int
    invoke_ns: int
    sent_ns: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts of one run. Values are counted, not rows; sentinels apart."""

    acked: int = 0
    unknown: int = 0
    failed: int = 0
    never_sent: int = 0
    deleted: int = 0  # of those acknowledged: by retention or DeleteRecords
    read: int = 0
    final_read: int = 0
    malformed_rows: int = 0
    mistimed: tuple[Mistimed, ...] = ()
    readers: tuple[ReaderReach, ...] = ()
    live_readers: tuple[str, ...] = ()  # the processes that read while the load ran
    replicas: tuple[ReplicaFiles, ...] = ()
    segments_listed: int = 0
    #: (topic, partition) whose sentinel is in the final leader's log at its acknowledged offset
    sentinels: frozenset[tuple[str, int]] = frozenset()
    untold: tuple[Untold, ...] = ()
    #: (topic, partition, leader epoch) of which something was acknowledged long before the conductor saw it begin;
    #: known only where elections were asked for
    contradicted: tuple[tuple[str, int, int], ...] = ()
    #: (topic, partition) -> where the log has the last value that was acknowledged without an offset and that each live
    #: reader must have come to
    due: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """Anomalies of one check, cause and excuse in one partition: how many, and the first of them as the example.

    ``size`` is what all of them cover (values, offsets), ``example_size`` what the example does; ``context`` is what
    surrounds the example. ``excuse`` is the kind of event that excuses them, if there is one in the evidence, and
    ``event`` describes it in words: an election is the same for all of them, any other event is the example's.
    ``event_ns`` is when it was, ``epoch`` the leader epoch that an election began.
    """

    check: str
    cause: str | None
    topic: str
    partition: int
    count: int
    size: int
    stream: int | None
    sequence: int | None
    offset: int | None
    example_size: int
    detail: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    excuse: str | None = None
    event: str | None = None
    event_ns: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Longest time without an acknowledgement in one partition, on the monotonic clock."""

    topic: str
    partition: int
    longest_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ReadLag:
    """How long after their acknowledgement values were first read live: over a partition, or all (no topic).

    The quantiles are over acknowledgements, each measured at its last value; ``stream`` and ``sequence`` are that of
    the worst. ``unread`` counts values that no live reader was handed. None where nothing was read.
    """

    topic: str | None
    partition: int | None
    p50_ns: int | None
    p99_ns: int | None
    worst_ns: int | None
    stream: int | None
    sequence: int | None
    unread: int


@dataclass(frozen=True, slots=True)
class Region:
    """Values by what was told, what is on disk and what final readers saw: one of the eight regions."""

    acked: bool
    logged: bool
    seen: bool
    values: int


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything that Spark found out about one run. ``failures``: checks that raised, with the first line why.

    ``anomalies`` has all that each check found, with the columns of ``verifier.telling.anomaly_files.JUDGED``.
    """

    facts: Facts
    found: tuple[Found, ...] = ()
    gaps: tuple[Gap, ...] = ()
    regions: tuple[Region, ...] = ()
    lags: tuple[ReadLag, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    anomalies: Mapping[str, pa.Table] = field(default_factory=dict)


def explained(brings: Iterable[tuple[str, Sequence[str]]], places: Mapping[str, frozenset[Place]]) -> dict[str, str]:
    """Which anomaly explains which: consequence -> cause.

    ``brings`` has each anomaly with its possible consequences, in the order of precedence; ``places`` is where each was
    found. One explains another only if every place with the consequence has the cause. A consequence explains nothing.
    """
    found: dict[str, str] = {}
    for name, consequences in brings:
        if not places.get(name) or name in found:
            continue
        for consequence in consequences:
            where = places.get(consequence)
            if where and consequence not in found and where <= places[name]:
                found[consequence] = name
    return found
