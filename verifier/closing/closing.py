"""What closes the evidence of a run, gathered from its files: seal, accounts, series, logs, topic ids. Judges nothing.

All but the histories is small, and everything is read in this process while Spark starts. A file that cannot be read is
listed with its error; ``verifier.completeness`` decides what follows for the verdict.
"""

from __future__ import annotations

import re
import uuid
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from verifier.accounts.account import HistoryAccount
from verifier.accounts.summing import accounts
from verifier.closing.load_files import LoadFiles, load_files
from verifier.closing.paused import own_lag_ms, pauses
from verifier.closing.proxy_log import link_starts
from verifier.closing.strangers import strangers
from verifier.closing.wall_clock import STEADY, ClockShift, shift_of
from verifier.coordinators.logs import coordinator_logs
from verifier.evidence import seal as seals
from verifier.evidence.bounded import size_of, whole
from verifier.evidence.declared import LIVE
from verifier.evidence.fault_kinds import DISK_ERRORS, HALTS, NO_MEMORY
from verifier.evidence.phases import RECOVERY
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import TOTALS, SeriesPoint, read_series
from verifier.witness.effectiveness import FaultRecord, fault_record
from verifier.witness.leaderships import Sighting
from verifier.witness.witness import sightings

#: A log line that matches means trouble. kafka-python's errors do not count: they are connections that broke, as faults
#: make them do, and its history has everything else.
_KNOWN = {**DISK_ERRORS, NO_MEMORY: HALTS}
_ALARM = re.compile(r"^Traceback \(most recent call last\)|(?<= )(?:ERROR|CRITICAL) (?!kafka[.:])")
#: Logs that are examined: the brokers', the proxy's, the load's.
_LOGS = ("nodes/*/broker.log", "nodes/*/process.log", "proxy.log", "relays.log", "loadgen/*.log")
LONGEST_LINE = 200
#: Characters of a log that are examined at a time.
_PIECE = 1 << 16
#: Of a ``partition.metadata``, which has two lines.
_MOST_METADATA_BYTES = 1 << 16
#: By its end, each live reader must have reached everything that was acknowledged this long before ``recovery``. It
#: continues to read during ``recovery``. Each of 70 recorded readers, under all sets of faults, had reached everything
#: that was acknowledged by the beginning of ``recovery``; the bound leaves a reader time for a connection's back-off.
CAUGHT_UP_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class LogAlarm:
    """Errors and tracebacks in one log: their number, and the first one. Those about a failure that a fault causes (a
    disk's error such as ``EIO``, or refused memory) are counted apart from the others; ``known`` names it, or is ""."""

    path: str
    count: int
    first: str
    known: str = ""


class Unreadable(NamedTuple):
    """A file of the evidence that cannot be read, by its path in the run directory, and why."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class Closing:
    """The evidence of a run besides the rows of its histories.

    - ``seal``: the digest of the seal; None without a usable one (``seal_problem`` says why)
    - ``series``, ``before_last``: the last point of each process's series, and the one before it, if there is one
    - ``lag_ms``: the worst lag of each process's event loop, without the time for which a fault had stopped it
    - ``topic_ids``: by (broker, topic, partition), the id in the replica's ``partition.metadata``; None if unreadable
    - ``looks``: by (topic, partition), the epochs that the conductor saw when it asked brokers for their leaders, and
      who led in each; ``looks_ns``: when it first and last asked, None if it never did
    - ``load``: the settings that the load processes read; None if unreadable
    - ``strangers``: files that belong to no declared process, broker or partition
    - ``clock``: how far the wall clock moved during the run
    - ``beside``: the files that each live process left besides its series
    - ``coordinators``: the partitions of the coordinators' topics and of the topic that a group writes to, and whether
      they can be read
    - ``link_starts``: how often each link began to listen, by the proxy's log; empty without such a log
    """

    seal: str | None = None
    seal_problem: str | None = None
    differences: tuple[seals.Difference, ...] = ()
    accounts: tuple[HistoryAccount, ...] = ()
    faults: FaultRecord = field(default_factory=FaultRecord)
    series: Mapping[str, SeriesPoint] = field(default_factory=dict)
    before_last: Mapping[str, SeriesPoint] = field(default_factory=dict)
    lag_ms: Mapping[str, float] = field(default_factory=dict)
    alarms: tuple[LogAlarm, ...] = ()
    topic_ids: Mapping[tuple[int, str, int], str | None] = field(default_factory=dict)
    looks: Mapping[tuple[str, int], Sequence[Sighting]] = field(default_factory=dict)
    unreadable: tuple[Unreadable, ...] = ()
    load: Mapping[str, Any] | None = None
    strangers: tuple[str, ...] = ()
    clock: ClockShift = STEADY
    looks_ns: tuple[int, int] | None = None
    beside: Mapping[str, LoadFiles] = field(default_factory=dict)
    coordinators: Mapping[tuple[str, int], bool] = field(default_factory=dict)
    link_starts: Mapping[str, int] = field(default_factory=dict)


def gather(directory: RunDirectory, run: RunModel) -> Closing:
    """Read everything that closes the evidence of a run."""
    digest, problem, differences = _seal(directory)
    unreadable: list[Unreadable] = []

    @contextmanager
    def reading(name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, TypeError, KeyError) as error:
            unreadable.append(Unreadable(name, str(error)))

    faults, clock, load = FaultRecord(), STEADY, None
    looks: Mapping[tuple[str, int], Sequence[Sighting]] = {}
    series: dict[str, SeriesPoint] = {}
    before_last: dict[str, SeriesPoint] = {}
    lag_ms: dict[str, float] = {}
    beside: dict[str, LoadFiles] = {}
    with reading("faults.jsonl"):
        faults = fault_record(directory.read_faults(), run.evidence.planned_faults)
    with reading("leaders.jsonl"):
        looks = _looks(directory, run)
    for process in run.evidence.of_role(*LIVE):
        path = directory.series_jsonl(process.name)
        with reading(f"loadgen/{path.name}"):
            pids = {child.pid for child in run.children if child.name == process.child}
            stops = pauses(process.name, pids, faults.injected)
            for point in _series(path, process.name):
                if process.name in series:
                    before_last[process.name] = series[process.name]
                series[process.name] = point
                lag_ms[process.name] = max(own_lag_ms(point, stops), lag_ms.get(process.name, 0.0))
        with reading(f"loadgen/{process.name}: its status or Locust's figures"):
            beside[process.name] = load_files(directory, process.name)
    with reading(directory.resources_jsonl.name):
        clock = shift_of(directory, run)
    coordinators: Mapping[tuple[str, int], bool] = {}
    with reading("nodes: the coordinators' logs"):
        coordinators = coordinator_logs(directory)
    with reading("loadgen/settings.json"):
        load = read_json(directory.load_settings_json)
    alarms: list[LogAlarm] = []
    for path in _logs(directory):
        with reading(str(path.relative_to(directory.path))):
            alarms.extend(_alarms(directory, path))
    spans = [(each.before_ns, each.time_ns) for seen in looks.values() for each in seen]
    times = [time_ns for span in spans for time_ns in span if time_ns is not None]
    return Closing(
        seal=digest,
        seal_problem=problem,
        differences=differences,
        accounts=accounts(sorted(directory.history_dir.glob("*.arrow")), due_ns(run)),
        faults=faults,
        series=series,
        before_last=before_last,
        lag_ms=lag_ms,
        alarms=tuple(alarms),
        topic_ids=dict(_topic_ids(directory)),
        looks=looks,
        unreadable=tuple(unreadable),
        load=load,
        strangers=tuple(strangers(directory, run)),
        clock=clock,
        looks_ns=(min(times), max(times)) if times else None,
        beside=beside,
        coordinators=coordinators,
        link_starts=link_starts(directory),
    )


def _looks(directory: RunDirectory, run: RunModel) -> Mapping[tuple[str, int], Sequence[Sighting]]:
    if not directory.leaders_jsonl.exists():
        raise FileNotFoundError("it is missing")
    return sightings(directory.read_leaders(), [topic.name for topic in run.topics])


def _series(path: Path, process: str) -> Iterator[SeriesPoint]:
    """The points of one process; ``ValueError`` for one of another, or one that cannot come next."""
    before: SeriesPoint | None = None
    for point in read_series(path):
        if point.process != process:
            raise ValueError(f"it is of {point.process}")
        if before is not None and not _follows(point, before):
            raise ValueError(f"the point at {point.time_ns} does not follow the one at {before.time_ns}")
        before = point
        yield point


def due_ns(run: RunModel) -> int:
    """Live readers must have reached everything acknowledged by this time; -1 without a ``recovery``."""
    recovery = run.phase(RECOVERY)
    return -1 if recovery is None else recovery.start_ns - CAUGHT_UP_NS


def _follows(point: SeriesPoint, before: SeriesPoint) -> bool:
    """Whether a point is later than another one of its process, and none of its totals is less."""
    return point.time_ns > before.time_ns and all(getattr(point, name) >= getattr(before, name) for name in TOTALS)


def _seal(directory: RunDirectory) -> tuple[str | None, str | None, tuple[seals.Difference, ...]]:
    """The seal's digest or why there is none, and what differs from it."""
    try:
        taken = seals.read(directory)
    except FileNotFoundError:
        return None, "the run was not sealed: it did not finish, or its seal.json was removed", ()
    except (OSError, ValueError) as error:
        return None, f"the seal cannot be read: {error}", ()
    try:
        return taken.digest, None, tuple(seals.compare(directory, taken))
    except (OSError, ValueError) as error:
        return taken.digest, f"the evidence cannot be compared with its seal: {error}", ()


def _logs(directory: RunDirectory) -> Iterator[Path]:
    for pattern in _LOGS:
        yield from sorted(directory.path.glob(pattern))


def _alarms(directory: RunDirectory, path: Path) -> Iterator[LogAlarm]:
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for line in _lines(path):
        if _ALARM.search(line):
            error = next((name for name, text in _KNOWN.items() if text in line), "")
            counts[error] += 1
            first.setdefault(error, line[:LONGEST_LINE])
    for error, count in counts.items():
        yield LogAlarm(str(path.relative_to(directory.path)), count, first[error], error)


def _lines(path: Path) -> Iterator[str]:
    """A line that is longer than any of ours comes in pieces."""
    size_of(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(_PIECE):
            yield line.rstrip("\n")


def _topic_ids(directory: RunDirectory) -> Iterator[tuple[tuple[int, str, int], str | None]]:
    """Topic ids as Kafka writes them into ``partition.metadata``: base64 of the 16 bytes, without padding."""
    for broker in directory.broker_ids():
        for path in sorted(directory.node(broker).rglob("partition.metadata")):
            topic, _, partition = path.parent.name.rpartition("-")
            if partition.isascii() and partition.isdecimal():
                yield (broker, topic, int(partition)), _topic_id(path)


def _topic_id(path: Path) -> str | None:
    try:
        text = whole(path, _MOST_METADATA_BYTES).decode()
        fields = dict(line.split(": ", 1) for line in text.splitlines() if line)
        if fields["version"].strip() != "0":
            return None
        return str(uuid.UUID(bytes=urlsafe_b64decode(fields["topic_id"].strip() + "==")))
    except (OSError, ValueError, KeyError):
        return None
