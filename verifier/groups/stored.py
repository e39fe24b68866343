"""Reads the committed offsets of each group from the most advanced replicas of ``__consumer_offsets``.

Owns the reading, and which offsets count. An offset in a transaction counts if the transaction was committed, and is
ordered by the offset of its own record, not of the marker (as in Kafka's coordinator). If the log does not end the
transaction, the offset may count. Judges nothing (``verifier/checks/lost_offset_commit.py`` does).
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
    """The stored offsets of all groups. ``is_everything``: every partition of the topic was read and is whole."""

    def __init__(
        self, places: dict[GroupPlace, StoredCommits], groups: dict[str, bool], *, is_everything: bool = False
    ) -> None:
        self._places = places
        self._is_everything = is_everything
        #: Group -> whether the log with its records is whole.
        self._groups = groups

    def __repr__(self) -> str:
        return f"StoredOffsets({len(self._places)} offsets of {len(self._groups)} groups)"

    def of(self, place: GroupPlace) -> StoredCommits | None:
        """The offsets of a group in a partition; None if they may be in a log that is missing or not whole."""
        group = place[0]
        if group not in self._groups:
            return StoredCommits() if self._is_everything else None
        return self._places.get(place, StoredCommits(is_whole=self._groups[group]))


def stored_offsets(directory: RunDirectory, run: RunModel) -> StoredOffsets:
    """The stored offsets of a run; empty if an election may have truncated acknowledged records. Raises ``OSError``."""
    if may_lose_offsets(run):
        return StoredOffsets({}, {})
    homes: dict[int, Path] = {}
    for (topic, partition), by_broker in sorted(copies_of(directory).items()):
        if topic == OFFSETS_TOPIC:
            homes[partition] = by_broker[most_advanced(by_broker)]
    count = configured_partitions(run, OFFSETS_TOPIC)
    return stored(map(keyed_log, homes.values()), are_all=count is not None and homes.keys() == set(range(count)))


def stored(logs: Iterable[KeyedLog], *, are_all: bool = False) -> StoredOffsets:
    """The stored offsets in these logs. ``are_all``: there is one log for every partition of the topic. Pure."""
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
    """The offsets of one group in one partition that were read so far."""

    offsets: set[int] = field(default_factory=set)
    lasts: set[int] = field(default_factory=set)

    def add(self, offset: int | None, *, is_certain: bool) -> None:
        """Adds the next record; ``offset`` None is a tombstone. Only a certain record replaces those before it."""
        if is_certain:
            self.lasts.clear()
        if offset is not None:
            self.offsets.add(offset)
            self.lasts.add(offset)

    def as_value(self, is_whole: bool) -> StoredCommits:
        return StoredCommits(frozenset(self.offsets), frozenset(self.lasts), is_whole)


def _read(log: KeyedLog) -> tuple[dict[GroupPlace, _FoundRecords], set[str], bool]:
    """The offsets in a log by group and partition, all groups in it, and whether it is whole and readable."""
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
        """Whether a record is in no transaction, or in a committed one; None if its transaction has no end."""
        if record.producer_id < 0:
            return True
        markers = self._markers[record.producer_id]
        return next((commits for offset, commits in markers if offset > record.offset), None)
