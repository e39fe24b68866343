"""What the coordinators' logs have of each group's offsets: the most advanced copy of ``__consumer_offsets``.

Owns the reading and what counts: an offset of a transaction counts if it was committed, by the offset of its record
(as Kafka's coordinator does); one that is not decided may. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from verifier.coordinators.topics import OFFSETS_TOPIC, configured_partitions, may_lose_offsets
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.groups.model import GroupPlace, StoredCommits
from verifier.groups.offset_records import offset_record
from verifier.segments.markers import COMMIT
from verifier.transactions.evidence import copies_of, most_advanced
from verifier.transactions.logs import KeyedLog, LoggedRecord, keyed_log
from verifier.transactions.state_records import UnknownRecord


class StoredOffsets:
    """Of all groups: answers for one of them in one partition. ``is_everything``: nothing is missing anywhere."""

    def __init__(
        self, places: dict[GroupPlace, StoredCommits], groups: dict[str, bool], *, is_everything: bool = False
    ) -> None:
        self._places = places
        self._is_everything = is_everything
        #: Whether the log is whole in which there is anything of the group.
        self._groups = groups

    def __repr__(self) -> str:
        return f"StoredOffsets({len(self._places)} offsets of {len(self._groups)} groups)"

    def of(self, place: GroupPlace) -> StoredCommits | None:
        """None for a group of which there is nothing, if a part is not there or not whole: that may have been it."""
        group = place[0]
        if group not in self._groups:
            return StoredCommits() if self._is_everything else None
        return self._places.get(place, StoredCommits(is_whole=self._groups[group]))


def stored_offsets(directory: RunDirectory, run: RunModel) -> StoredOffsets:
    """Of a run. Nothing, if an election may have cut off what was acknowledged. Raises ``OSError``."""
    if may_lose_offsets(run):
        return StoredOffsets({}, {})
    homes: dict[int, Path] = {}
    for (topic, partition), by_broker in sorted(copies_of(directory).items()):
        if topic == OFFSETS_TOPIC:
            homes[partition] = by_broker[most_advanced(by_broker)]
    count = configured_partitions(run, OFFSETS_TOPIC)
    return stored(map(keyed_log, homes.values()), are_all=count is not None and homes.keys() == set(range(count)))


def stored(logs: Iterable[KeyedLog], *, are_all: bool = False) -> StoredOffsets:
    """Of the logs of partitions; ``are_all``: of every one that the topic has. Pure."""
    places: dict[GroupPlace, StoredCommits] = {}
    groups: dict[str, bool] = {}
    is_everything = are_all
    for log in logs:
        found, names, is_whole = _read(log)
        is_everything &= is_whole
        groups |= dict.fromkeys(names, is_whole)
        places |= {place: each.as_value(is_whole) for place, each in found.items()}
    return StoredOffsets(places, groups, is_everything=is_everything)


@dataclass
class _FoundRecords:
    """Of one group in one partition, as far as the log was read."""

    offsets: set[int] = field(default_factory=set)
    lasts: set[int] = field(default_factory=set)

    def add(self, offset: int | None, *, is_certain: bool) -> None:
        if is_certain:
            self.lasts.clear()
        if offset is not None:
            self.offsets.add(offset)
            self.lasts.add(offset)

    def as_value(self, is_whole: bool) -> StoredCommits:
        return StoredCommits(frozenset(self.offsets), frozenset(self.lasts), is_whole)


def _read(log: KeyedLog) -> tuple[dict[GroupPlace, _FoundRecords], set[str], bool]:
    ends = _Ends(log)
    found: dict[GroupPlace, _FoundRecords] = defaultdict(_FoundRecords)
    groups: set[str] = set()
    is_whole = log.is_whole
    for record in log.records:
        try:
            told = offset_record(record.key, record.value)
        except UnknownRecord:
            is_whole = False
            continue
        groups.add(told.group)
        became = ends.of(record)
        if told.place is not None and became is not False:
            found[told.group, told.place].add(told.offset, is_certain=became is True)
    return found, groups, is_whole


class _Ends:
    """How the transactions of a log ended."""

    def __init__(self, log: KeyedLog) -> None:
        #: By producer: (offset of the marker, whether it commits), ascending.
        self._markers: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for ended in log.ended:
            self._markers[ended.producer_id].append((ended.marker_offset, ended.kind == COMMIT))

    def of(self, record: LoggedRecord) -> bool | None:
        """Whether a record counts; None if that is not decided."""
        if record.producer_id < 0:
            return True
        markers = self._markers[record.producer_id]
        return next((commits for offset, commits in markers if offset > record.offset), None)
