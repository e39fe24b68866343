"""What a run reached, as its brokers' journals tell it: leader epochs, ISRs, truncations, elections, resent batches.

Owns the counting, the words, and what counts as having reached something that another run has not. No verdict depends
on it: it is how one sees whether a schedule did what it is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import median
from typing import Any

from verifier.evidence.phases import STOP
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

#: The file in a run's directory.
REACHED_FILE = "reached.json"
#: Whose leader is the coordinator of what.
_COORDINATORS = {"__consumer_offsets": "group", "__transaction_state": "transaction"}
#: Of a figure it is told apart whether it is at least this much.
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)
_OR_MORE = " or more"
#: Noted some time after it happened.
_RESENT = "batches-resent"
#: A change of a partition that is no election, and one that leaves it without a leader.
_NEW, _NO_LEADER = "new partition", "none"


@dataclass(frozen=True, slots=True)
class Reached:
    """Counts of one run, or of several together.

    ``leader_epochs`` and ``truncated``: of each partition the epochs that it had, and how often a log of it was cut.
    ``isr_sizes``: how often a partition came to have an ISR of that size. ``truncations``: cuts by the number of
    records (``10-99``). ``elections``: by the reason of the controller; ``none`` is being left without a leader.
    ``resent``: batches that arrived again (``retried``) and those that were answered as duplicates (``deduplicated``).
    """

    leader_epochs: Mapping[str, int] = field(default_factory=dict)
    isr_sizes: Mapping[str, int] = field(default_factory=dict)
    truncations: Mapping[str, int] = field(default_factory=dict)
    truncated: Mapping[str, int] = field(default_factory=dict)
    elections: Mapping[str, int] = field(default_factory=dict)
    coordinator_failovers: Mapping[str, int] = field(default_factory=dict)
    resent: Mapping[str, int] = field(default_factory=dict)
    controllers: int = 0
    sessions_expired: int = 0
    producer_id_blocks: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reached:
        """The inverse of ``to_json``. Raises ``TypeError`` or ``ValueError``."""
        read: dict[str, Any] = {}
        for each in fields(cls):
            given = value.get(each.name, 0 if each.type == "int" else {})
            read[each.name] = int(given) if each.type == "int" else {str(k): int(v) for k, v in dict(given).items()}
        return cls(**read)

    def and_also(self, other: Reached) -> Reached:
        """Both together."""
        summed: dict[str, Any] = {}
        for each in fields(self):
            one, two = getattr(self, each.name), getattr(other, each.name)
            summed[each.name] = one + two if isinstance(one, int) else dict(Counter(one) + Counter(two))
        return Reached(**summed)

    def figures(self) -> dict[str, str]:
        """For people: what, and how much of it; what was not reached is left out."""
        epochs = sorted(self.leader_epochs.values())
        told = {
            "leader epochs per partition": _from_to(epochs),
            "ISR sizes": ", ".join(sorted(self.isr_sizes)),
            "truncations": _by_kind(self.truncations, f" in {len(self.truncated)} partitions", " records"),
            "elections": _by_kind(self.elections),
            "coordinator failovers": _by_kind(self.coordinator_failovers),
            "batches that were resent": ", ".join(f"{count:,} {name}" for name, count in self.resent.items() if count),
            "controllers": str(self.controllers or ""),
            "ZooKeeper sessions that expired": str(self.sessions_expired or ""),
            "producer-id blocks": str(self.producer_id_blocks or ""),
        }
        return {name: text for name, text in told.items() if text}

    def line(self) -> str:
        """The same as one line."""
        return "; ".join(f"{name}: {text}" for name, text in self.figures().items()) or "nothing"

    def marks(self) -> frozenset[str]:
        """What another run may not have reached: each kind, and each figure as far as ``_STEPS`` tell it apart."""
        found = {f"ISR size {size}" for size in self.isr_sizes}
        for what, counts in (
            ("truncations of {} records", self.truncations),
            ("elections: {}", self.elections),
            ("coordinator failovers: {}", self.coordinator_failovers),
            ("batches {}", self.resent),
        ):
            found |= {step for kind, count in counts.items() for step in _steps(what.format(kind), count)}
        epochs = int(median(self.leader_epochs.values())) if self.leader_epochs else 0
        for what, count in (
            ("leader epochs per partition", epochs),
            ("partitions that were truncated", len(self.truncated)),
            ("controllers", self.controllers),
            ("sessions expired", self.sessions_expired),
            ("producer-id blocks", self.producer_id_blocks),
        ):
            found |= {*_steps(what, count)}
        return frozenset(found)


def _from_to(epochs: Sequence[int]) -> str:
    """Of figures in order, the least, the most and the median; one figure if they are the same."""
    if not epochs:
        return ""
    least, most = epochs[0], epochs[-1]
    return str(least) if least == most else f"{least} to {most} (median {median(epochs):g})"


def _by_kind(counts: Mapping[str, int], after: str = "", unit: str = "") -> str:
    if not counts:
        return ""
    kinds = ", ".join(f"{kind}{unit} {count:,}" for kind, count in sorted(counts.items()))
    return f"{sum(counts.values()):,}{after} ({kinds})"


def told(marks: Iterable[str]) -> list[str]:
    """Marks for people, sorted: of each figure the largest alone."""
    largest: dict[str, tuple[int, str]] = {}
    for mark in marks:
        what, separator, step = mark.rpartition(": ")
        number = int(step.removesuffix(_OR_MORE)) if separator and step.endswith(_OR_MORE) else 0
        name = what if number else mark
        largest[name] = max(largest.get(name, (0, "")), (number, mark))
    return [mark for _, (_, mark) in sorted(largest.items())]


def _steps(what: str, count: int) -> Iterator[str]:
    return (f"{what}: {step}{_OR_MORE}" for step in _STEPS if count >= step)


def reached(entries: Iterable[Mapping[str, Any]], stop_ns: int | None = None) -> Reached:
    """Count the entries of all journals of a run. Raises ``KeyError`` or ``TypeError`` for what is no entry.

    ``stop_ns``: since when the cluster was being stopped, on the monotonic clock. The elections and ISRs of that time
    are not what a schedule brought about.
    """
    counting = _Counting()
    for entry in sorted(entries, key=lambda each: int(each["monotonic_ns"])):
        if stop_ns is None or entry["monotonic_ns"] < stop_ns or entry.get("event") == _RESENT:
            counting.take(entry)
    return counting.result()


def reached_by(directory: RunDirectory) -> Reached:
    """What a run reached. A journal that cannot be read tells nothing."""
    found: list[dict[str, Any]] = []
    for broker in directory.broker_ids():
        try:
            journal = directory.read_journal(broker)
            reached(journal)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found += journal
    return reached(found, _stopped_ns(directory))


def _stopped_ns(directory: RunDirectory) -> int | None:
    """When the run began to stop its cluster; None if it does not say."""
    try:
        stop = RunModel.from_json(directory.read_run()).phase(STOP)
    except (OSError, ValueError):
        return None
    return None if stop is None else stop.start_ns


class _Counting:
    """The counters, and the last known leader of each partition."""

    def __init__(self) -> None:
        self._epochs: dict[str, set[int]] = {}
        self._leaders: dict[str, int] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._sums: Counter[str] = Counter()

    def _count(self, what: str, kind: str, count: int = 1) -> None:
        self._counts.setdefault(what, Counter())[kind] += count

    def take(self, entry: Mapping[str, Any]) -> None:
        event = entry.get("event")
        if event == "partition-changed":
            self._partition_changed(entry, str(entry["topic"]), f"{entry['topic']}-{entry['partition']}")
        elif event == "log-truncated" and (records := entry["log_end_offset"] - entry["offset"]) > 0:
            if entry["topic"] not in _COORDINATORS:
                self._count("truncations", _length(records))
                self._count("truncated", f"{entry['topic']}-{entry['partition']}")
        elif event == _RESENT:
            self._count("resent", "retried", int(entry["retries"]))
            self._count("resent", "deduplicated", int(entry["duplicates"]))
        elif event in _SUMS:
            self._sums[_SUMS[event]] += 1

    def _partition_changed(self, entry: Mapping[str, Any], topic: str, name: str) -> None:
        leader, before = int(entry["leader"]), self._leaders.get(name)
        self._leaders[name] = leader
        is_election = leader != before and entry["reason"] != _NEW
        if topic in _COORDINATORS:
            if is_election and leader >= 0:
                self._count("coordinator_failovers", _COORDINATORS[topic])
            return
        self._epochs.setdefault(name, set()).add(int(entry["leader_epoch"]))
        self._count("isr_sizes", str(len(entry["isr"])))
        if is_election:
            self._count("elections", str(entry["reason"]) if leader >= 0 else _NO_LEADER)

    def result(self) -> Reached:
        found: dict[str, Any] = {what: dict(sorted(counter.items())) for what, counter in self._counts.items()}
        found |= {"leader_epochs": {name: len(epochs) for name, epochs in sorted(self._epochs.items())}, **self._sums}
        return Reached(**found)


#: Events that are counted alone, and as what.
_SUMS = {
    "controller-elected": "controllers",
    "session-expired": "sessions_expired",
    "producer-ids": "producer_id_blocks",
}


def _length(records: int) -> str:
    """``1-9``, ``10-99`` and so on."""
    least = 10 ** (len(str(records)) - 1)
    return f"{least}-{10 * least - 1}"


def total(found: Iterable[Reached]) -> Reached:
    """All of them together."""
    summed = Reached()
    for each in found:
        summed = summed.and_also(each)
    return summed
