"""What is shown of the surroundings of anomalies: plain values that the report draws. Owns shapes, reads nothing.

Times are nanoseconds on the run's monotonic clock, as everywhere in a run's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from verifier.facts import Found

#: (topic, partition)
Name = tuple[str, int]

#: What tells an example from all others of its run: check, cause, topic, partition, excuse and event.
ExampleKey = tuple[str, str | None, str, int, str | None, str | None]


def example_key(found: Found) -> ExampleKey:
    """A verdict has one example of each kind, so that each of two elections in a partition has its own."""
    return found.check, found.cause, found.topic, found.partition, found.excuse, found.event


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in one partition that is to be shown: the offsets in question, and the windows around them.

    ``windows`` are inclusive ranges of offsets, ascending and apart from each other.
    """

    topic: str
    partition: int
    places: tuple[int, ...]
    windows: tuple[tuple[int, int], ...]
    found: Found

    @property
    def name(self) -> Name:
        return self.topic, self.partition

    @property
    def key(self) -> str:
        """Names the place within the page; the same for all anomalies of one place."""
        return f"at-{self.topic}-{self.partition}-{'-'.join(map(str, self.places))}"

    def holds(self, first: int, last: int) -> bool:
        """Whether a range of offsets reaches into one of the windows."""
        return any(first <= high and last >= low for low, high in self.windows)


@dataclass(frozen=True, slots=True)
class ToldSpan:
    """What one client was told of a span of values. ``how``: ``acknowledged`` or ``read``; ``offset`` None: unknown.

    ``stream`` is None where a reader was handed bytes that are no value of ours; ``error`` then says what they were.
    """

    name: Name
    how: str
    process: str
    final: bool
    offset: int | None
    values: int
    stream: int | None
    sequence: int
    at_ns: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Values of one stream at consecutive offsets of a batch; not ours: ``stream`` is None, ``problem`` says why."""

    first_offset: int
    last_offset: int
    stream: int | None
    sequence: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One batch as it lies in the file of one replica. ``raw`` are its first bytes, at least the whole header.

    ``fields`` are the header's, by the names of ``verifier.segments.walk``; ``value_header`` the first bytes of the
    value at the place in question, empty if the batch does not hold it.
    """

    broker: int
    file: str
    position: int
    size_bytes: int
    fields: Mapping[str, int]
    crc_ok: bool
    problem: str | None
    spans: tuple[StoredSpan, ...]
    raw: bytes
    value_header: bytes = b""

    @property
    def base_offset(self) -> int:
        return self.fields["base_offset"]

    @property
    def last_offset(self) -> int:
        return self.fields["base_offset"] + self.fields["last_offset_delta"]


@dataclass(frozen=True, slots=True)
class Stored:
    """What one replica holds around a place. ``note`` says why it may not be all; ``tail`` has bytes of no batch."""

    broker: int
    leader: bool
    batches: tuple[StoredBatch, ...]
    note: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of one broker's log around a time, oldest first; ``left_out`` lines are not shown."""

    broker: int
    lines: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """From ``time_ns`` on a partition had this leader (-1: none), leader epoch and ISR."""

    time_ns: int
    name: Name
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SpotView:
    """One spot with everything that was found around it. ``at_ns`` None: nothing tells when it happened."""

    spot: Spot
    told: tuple[ToldSpan, ...] = ()
    stored: tuple[Stored, ...] = ()
    at_ns: int | None = None
    logs: tuple[LogLines, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moments:
    """When the anomalies of one check happened: those of which a client's answer tells. Ascending."""

    check: str
    allowed: bool
    times_ns: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileLink:
    """A file of the run, relative to the page."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many sequences were reserved, and what became of those that brought no acknowledgement.

    ``never_sent``: reserved, and never handed to a client.
    """

    reserved: int = 0
    failed: int = 0
    never_sent: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything that the report shows beside the verdict; all of it may be empty.

    ``acks`` are the times of acknowledgements by partition, ascending. ``spots`` tells which place shows an example.
    """

    places: Mapping[str, SpotView] = field(default_factory=dict)
    spots: Mapping[ExampleKey, str] = field(default_factory=dict)
    moments: tuple[Moments, ...] = ()
    changes: tuple[LeaderChange, ...] = ()
    leaders_from: str = ""
    acks: Mapping[Name, NDArray[np.int64]] = field(default_factory=dict)
    outcomes: Outcomes | None = None
    links: tuple[FileLink, ...] = ()
    anomaly_files: tuple[FileLink, ...] = ()
    notes: tuple[str, ...] = ()
    #: What the run says that it reached, and how much of it.
    reached: Mapping[str, str] = field(default_factory=dict)
    #: The run directory, as it was named to the verifier.
    directory: str = ""

    def place_of(self, found: Found) -> SpotView | None:
        """The place of an example, if it was examined."""
        return self.places.get(self.spots.get(example_key(found), ""))
