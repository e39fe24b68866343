"""The oracle of groups: no committed offset is lost or goes back, nothing is left out, copies are single.

Owns that judgment, by the order in which commits count in ``__consumer_offsets``. Each commit has a tag of its own, so
it is known which one anybody was told. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cluster.coordinator.group.records import OffsetKey, parse_key, parse_offset_value
from tests.simulation.coordination.drawn import INPUT
from tests.simulation.coordination.told import Told
from tests.simulation.coordination.txn_log import TxnLog
from tests.simulation.kept import Finding
from tests.simulation.seen import TopicPartition


class Counted(NamedTuple):
    """A commit, from where on in the log it counts; a tag of None is that it was removed."""

    place: int
    offset: int
    tag: str | None


#: (group, partition) -> what was committed for it, in the order in which that counts.
Commits = Mapping[tuple[str, TopicPartition], list[Counted]]


def commits(logs: Iterable[TxnLog]) -> Commits:
    """What the partitions of ``__consumer_offsets`` hold."""
    found: defaultdict[tuple[str, TopicPartition], list[Counted]] = defaultdict(list)
    for log in logs:
        for stood in log.stood:
            key = parse_key(stood.record.key or b"")
            if not isinstance(key, OffsetKey) or not stood.is_committed or stood.decided_at is None:
                continue
            counted = Counted(stood.decided_at, -1, None)
            if stood.record.value is not None:
                value = parse_offset_value(stood.record.value)
                counted = Counted(stood.decided_at, value.offset, value.metadata)
            found[key.group_id, key.topic_partition].append(counted)
    return {where: sorted(each, key=lambda one: one.place) for where, each in found.items()}


def judge(told: Told, counted: Commits, logs: Mapping[TopicPartition, TxnLog]) -> list[Finding]:
    """``logs`` are those that members read."""
    known = _Known(told, counted)
    return [*_stored(told, known), *_looks(told, known), *_starts(told, known), *_delivered(told, counted, logs)]


class _Known:
    """Commits by number and tag, and when members were told of which."""

    def __init__(self, told: Told, counted: Commits) -> None:
        self.counted = counted
        self._numbers = {(where, one.tag): number for where, each in counted.items() for number, one in enumerate(each)}
        #: (when, its number) of those that were acknowledged.
        self._acknowledged: defaultdict[tuple[str, TopicPartition], list[tuple[float, int]]] = defaultdict(list)
        for commit in told.commits:
            for key in commit.offsets if commit.is_stored else ():
                number = self.number((commit.group_id, key), commit.tag)
                if number is not None:
                    self._acknowledged[commit.group_id, key].append((commit.told_s, number))

    def number(self, where: tuple[str, TopicPartition], tag: str | None) -> int | None:
        """How many commits count before that of a tag; -1 for no commit at all, None for one that does not count."""
        return -1 if tag is None else self._numbers.get((where, tag))

    def least(self, where: tuple[str, TopicPartition], before_s: float) -> int:
        """The number of the latest commit that was acknowledged before a time; -1 without one."""
        return max((number for told_s, number in self._acknowledged[where] if told_s < before_s), default=-1)


def _stored(told: Told, known: _Known) -> list[Finding]:
    """What was acknowledged is there, what was refused is not, and nothing was removed."""
    findings = []
    for commit in told.commits:
        for key, offset in commit.offsets.items():
            is_there = known.number((commit.group_id, key), commit.tag) is not None
            if commit.is_stored is not None and is_there is not commit.is_stored:
                what = "was acknowledged and does not count" if commit.is_stored else "was refused and counts"
                text = f"{commit.tag}: {offset} of {key[0]}-{key[1]} {what}"
                findings.append(("lost-commit" if commit.is_stored else "G1a", text))
    for (group_id, key), each in known.counted.items():
        if any(one.tag is None for one in each):
            findings.append(("lost-commit", f"what {group_id} committed for {key[0]}-{key[1]} was removed"))
    return findings


def _looks(told: Told, known: _Known) -> list[Finding]:
    """A coordinator names what was committed last, or something later, and never goes back."""
    findings = []
    latest: dict[tuple[str, TopicPartition], tuple[int, float]] = {}
    for look in sorted(told.looks, key=lambda each: each.told_s):
        where = (look.group_id, look.key)
        number = known.number(where, look.tag)
        name = f"{look.tag} of {look.group_id} for {look.key[0]}-{look.key[1]} at {look.told_s:g} s"
        if number is None:
            findings.append(("lost-commit", f"the coordinator named {name}, which does not count"))
            continue
        least = known.least(where, look.asked_s)
        before, before_s = latest.get(where, (-1, 0.0))
        if before_s < look.asked_s:
            least = max(least, before)
        if number < least:
            tag = known.counted[where][least].tag
            findings.append(("offset-regression", f"the coordinator named {name}, after {tag}"))
        if number >= before:
            latest[where] = number, look.told_s
    return findings


def _starts(told: Told, known: _Known) -> list[Finding]:
    """A member begins no earlier than a commit says that was acknowledged before it was assigned the partition."""
    findings = []
    for group_id, key, assigned_s, offset in told.starts:
        least = known.least((group_id, key), assigned_s)
        if least < 0:
            continue
        later = known.counted[group_id, key][least:]
        if offset < min(each.offset for each in later):
            text = f"a member of {group_id} was given {key[0]}-{key[1]}@{offset}, {later[0].tag} says {later[0].offset}"
            findings.append(("offset-regression", text))
    return findings


def _delivered(told: Told, counted: Commits, logs: Mapping[TopicPartition, TxnLog]) -> list[Finding]:
    """All that is committed as consumed was delivered to a member, as it stands in the log."""
    findings = []
    for (group_id, key), each in counted.items():
        if key not in logs:
            continue
        given = told.delivered.get((group_id, key), {})
        only_committed = group_id in told.only_committed
        end = each[-1].offset
        for stood in logs[key].stood:
            offset, value = stood.record.offset, stood.record.value
            is_due = stood.is_committed or not only_committed
            if offset in given and given[offset] != value:
                findings.append(("inconsistent-offsets", f"{group_id} was given {given[offset]!r} at {key}@{offset}"))
            if offset in given and not is_due:
                findings.append(("G1a", f"{group_id} was given {value!r} at {key}@{offset}, which is aborted"))
            if is_due and offset < end and offset not in given:
                findings.append(("poll-skip", f"{group_id} has committed {end} of {key}, nobody was given {offset}"))
    return findings


def copies(
    group_id: str, counted: Commits, inputs: Mapping[TopicPartition, TxnLog], outputs: Iterable[TxnLog]
) -> list[Finding]:
    """Of each record up to where the group has committed there is one committed copy, and of no other record any."""
    found: defaultdict[tuple[int, int], int] = defaultdict(int)
    for log in outputs:
        for stood in log.stood:
            if stood.is_committed:
                place = (stood.record.value or b"").decode().split(" ")[0]
                number, _, offset = place.removeprefix(f"{INPUT}-").partition("@")
                found[int(number), int(offset)] += 1
    findings = []
    for key, log in inputs.items():
        each = counted.get((group_id, key), [])
        end = each[-1].offset if each else 0
        for stood in log.stood:
            offset = stood.record.offset
            due = 1 if stood.is_committed and offset < end else 0
            if (copied := found.pop((key[1], offset), 0)) != due:
                text = (
                    f"{key[0]}-{key[1]}@{offset} has {copied} committed copies where {due} is due, committed is {end}"
                )
                findings.append(("duplicate" if copied > due else "lost-write", text))
    findings += [("phantom", f"a copy of {INPUT}-{number}@{offset}") for number, offset in found]
    return findings
