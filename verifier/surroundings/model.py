"""The evidence around anomalies as plain values that the report draws. Owns these types; reads nothing.

Times are in ns on the run's monotonic clock, as in all files of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from verifier.facts import Found

#: (topic, partition)
Name = tuple[str, int]

#: Identifies an example within its run: check, cause, topic, partition, excuse and event.
ExampleKey = tuple[str, str | None, str, int, str | None, str | None]


def example_key(found: Found) -> ExampleKey:
    """The key of an example. It includes the event, so each of two elections in a partition has its own example."""
    return found.check, found.cause, found.topic, found.partition, found.excuse, found.event


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in one partition to show: the offsets of the anomaly, and the windows around them.

    ``windows`` are inclusive ranges of offsets, ascending, with gaps between them.
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
        """The name of the place within the page. All anomalies of one place have the same key."""
        return f"at-{self.topic}-{self.partition}-{'-'.join(map(str, self.places))}"

    def holds(self, first: int, last: int) -> bool:
        """Whether an inclusive range of offsets overlaps one of the windows."""
        return any(first <= high and last >= low for low, high in self.windows)


@dataclass(frozen=True, slots=True)
class ToldSpan:
    """A claim of one client about consecutive values. ``how`` is ``acknowledged`` or ``read``.

    ``offset`` is None if it is unknown. ``stream`` is None if a reader received bytes that are not a value of the run;
    ``error`` then describes them.
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
    """Values of one stream at consecutive offsets of a batch.

    ``stream`` is None if the bytes are not values of the run; ``problem`` then says why.
    """

    first_offset: int
    last_offset: int
    stream: int | None
    sequence: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One batch in a file of one replica. ``raw`` has its first bytes, at least the whole header.

    ``fields`` has the header's fields by their names in ``verifier.segments.walk``. ``value_header`` has the first
    bytes of the value at the spot; it is empty if the batch does not contain it.
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
    """The batches of one replica around a spot. ``note`` says what may be missing, and why.

    ``tail`` describes bytes after the last whole batch.
    """

    broker: int
    leader: bool
    batches: tuple[StoredBatch, ...]
    note: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of one broker's log around a time, oldest first. ``left_out`` counts the lines that are not shown."""

    broker: int
    lines: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """From ``time_ns`` on, a partition had this leader (-1 for none), leader epoch and ISR."""

    time_ns: int
    name: Name
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SpotView:
    """One spot with all evidence around it. ``at_ns`` is when the anomaly happened, None if that is unknown."""

    spot: Spot
    told: tuple[ToldSpan, ...] = ()
    stored: tuple[Stored, ...] = ()
    at_ns: int | None = None
    logs: tuple[LogLines, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moments:
    """The times of one check's anomalies that an acknowledgement can date, ascending, with a count for each time."""

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
    """The number of sequences that were reserved, and of those without an acknowledgement, by outcome.

    ``never_sent``: reserved, but never passed to a client.
    """

    reserved: int = 0
    failed: int = 0
    never_sent: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything that the report shows in addition to the verdict. Any part may be empty.

    ``acks`` has the times of acknowledgements by partition, ascending. ``places`` has the spots by their key, and
    ``spots`` maps an example to the key of the spot that shows it.
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
    #: The contents of ``reached.json``: what the run reached -> how much of it.
    reached: Mapping[str, str] = field(default_factory=dict)
    #: The run directory, as the user gave it to the verifier.
    directory: str = ""

    def place_of(self, found: Found) -> SpotView | None:
        """The spot that shows an example; None if it was not chosen."""
        return self.places.get(self.spots.get(example_key(found), ""))
