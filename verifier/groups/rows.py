"""Joins the rows of members' histories by group and partition. Pure.

Owns what a row of a commit proves (docs/history.md "Groups"), and when a member released a partition. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from verifier.evidence.history import Function
from verifier.groups.model import (
    NEVER_NS,
    GroupPartition,
    GroupPlace,
    OffsetCommit,
    OffsetSpan,
    ReadableLog,
    ResumedMember,
    StoredCommits,
)
from verifier.transactions.client_rows import ABORTED, COMMITTED, outcome
from verifier.transactions.state_records import TopicPartition

#: The functions (``f``) of the rows about groups.
FUNCTIONS: tuple[Function, ...] = (
    "member", "resume", "revoke", "leave", "offset-commit", "poll", "offsets", "commit", "abort",
)  # fmt: skip
#: The columns that ``group_partitions`` reads.
COLUMNS = (
    "process", "f", "type", "topic", "partition", "first_offset", "last_offset", "invoke_ns", "complete_ns",
    "incarnation", "error", "session", "op",
)  # fmt: skip

GroupRow = Mapping[str, Any]


def group_partitions(
    rows: Iterable[GroupRow],
    logs: Mapping[TopicPartition, ReadableLog],
    *,
    is_whole: bool,
    stored: Callable[[GroupPlace], StoredCommits | None] = lambda _: None,
) -> dict[GroupPlace, GroupPartition]:
    """Every group and partition in the rows of all histories. The rows of each process are in its history's order.

    Rows of sessions without a ``member`` row are ignored. ``is_whole`` and ``stored`` go into the results.
    """
    told = list(rows)
    # a session's ``member`` row may come after its other rows
    members = {(row["process"], row["session"]): _Member.of(row) for row in told if row["f"] == "member"}
    resumed: dict[GroupPlace, list[ResumedMember]] = defaultdict(list)
    commits: dict[GroupPlace, list[OffsetCommit]] = defaultdict(list)
    delivered: dict[GroupPlace, list[OffsetSpan]] = defaultdict(list)
    inputs: list[GroupRow] = []
    ends: dict[tuple[str, int], list[GroupRow]] = defaultdict(list)
    released = _Released()
    for row in told:
        if row["f"] in ("commit", "abort"):
            ends[row["process"], row["op"]].append(row)
        elif (who := members.get((row["process"], row["session"]))) is not None:
            place = who.group, (row["topic"], row["partition"])
            match row["f"]:
                case "resume":
                    resumed[place].append(_resumed(row, who))
                case "revoke":
                    released.revoked(row)
                case "leave":
                    released.left(row, who)
                case "offset-commit" if row["type"] != "fail":
                    commits[place].append(_commit(row))
                case "poll" if 0 <= row["first_offset"] <= row["last_offset"]:
                    delivered[place].append(OffsetSpan(row["first_offset"], row["last_offset"]))
                case "offsets" if row["type"] != "fail":
                    inputs.append(row)
    for row in inputs:
        group = members[row["process"], row["session"]].group
        found = _in_transaction(row, ends.get((row["process"], row["op"]), ()))
        if found is not None:
            commits[group, (row["topic"], row["partition"])].append(found)
    return {
        place: GroupPartition(
            tuple(released.with_release(each, place[1]) for each in resumed.get(place, ())),
            tuple(commits.get(place, ())),
            tuple(delivered.get(place, ())),
            logs.get(place[1]),
            is_whole,
            stored(place),
        )
        for place in sorted({*resumed, *commits, *delivered})
    }


class _Member(NamedTuple):
    """The group, member id and generation of a session."""

    group: str
    member_id: str
    generation: int

    @classmethod
    def of(cls, row: GroupRow) -> _Member:
        """From a ``member`` row. Its ``error`` has the group and the member id, separated by a space."""
        group, _, member_id = str(row["error"] or "").partition(" ")
        return cls(group, member_id, row["incarnation"])


class _Released:
    """When each member lost a partition: it was revoked, or the member left the group."""

    def __init__(self) -> None:
        self._revoked: dict[tuple[str, int, TopicPartition], int] = {}
        self._left: dict[tuple[str, str], int] = {}

    def revoked(self, row: GroupRow) -> None:
        """Notes a ``revoke`` row."""
        where = row["process"], row["session"], (row["topic"], row["partition"])
        self._revoked[where] = min(row["invoke_ns"], self._revoked.get(where, NEVER_NS))

    def left(self, row: GroupRow, who: _Member) -> None:
        """Notes a ``leave`` row. It is in the member's newest session, and ends all sessions of the member."""
        whose = row["process"], who.member_id
        self._left[whose] = min(row["invoke_ns"], self._left.get(whose, NEVER_NS))

    def with_release(self, resumed: ResumedMember, place: TopicPartition) -> ResumedMember:
        """``resumed`` with the time at which the member lost this partition."""
        revoked_ns = self._revoked.get((resumed.process, resumed.session, place), NEVER_NS)
        left_ns = self._left.get((resumed.process, resumed.member_id), NEVER_NS)
        return resumed._replace(released_ns=min(revoked_ns, left_ns))


def _resumed(row: GroupRow, who: _Member) -> ResumedMember:
    whose = row["process"], row["session"]
    return ResumedMember(
        *whose, row["first_offset"], row["invoke_ns"], row["complete_ns"], who.member_id, who.generation
    )


def _commit(row: GroupRow) -> OffsetCommit:
    is_certain = row["type"] == "ok"
    return OffsetCommit(
        row["process"],
        row["session"],
        row["first_offset"],
        row["incarnation"],
        row["invoke_ns"],
        row["complete_ns"] if is_certain else NEVER_NS,
        is_certain,
    )


def _in_transaction(row: GroupRow, ends: Iterable[GroupRow]) -> OffsetCommit | None:
    """The commit in an ``offsets`` row of a transaction; None if the transaction was certainly not committed.

    The row has the last input offset, so the committed offset is the next one.
    """
    told = list(ends)
    became = outcome((each["f"], each["type"]) for each in told)
    if became == ABORTED:
        return None
    committed = [each["complete_ns"] for each in told if (each["f"], each["type"]) == ("commit", "ok")]
    is_certain = became == COMMITTED
    return OffsetCommit(
        row["process"],
        row["session"],
        row["last_offset"] + 1,
        -1,
        row["invoke_ns"],
        max(committed) if is_certain else NEVER_NS,
        is_certain,
    )
