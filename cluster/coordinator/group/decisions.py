"""What follows from one event: answers, timers and appends, collected while a group's state changes.

Owns the shapes of the three and the settings that decisions depend on. Does not own the decisions. The shell, when an
event is over, sends the answers, sets and cancels timers by name, and appends each batch to its partition; it hands an
append back with its result, in the order of the partition's log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from cluster.coordinator.group.purposes import Purpose
from cluster.coordinator.group.requests import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Waiter

#: (key, value) of each record; a value of None is a tombstone.
Records = Iterable[tuple[bytes, bytes | None]]


class TimerKind(Enum):
    """What a timer ends; docs/reference/kafka.md "Groups" has the lengths."""

    JOIN = "join"
    SYNC = "sync"
    SESSION = "session"
    PENDING = "pending"

    # A timer is looked up by its name a few times for each member: an enum's own hash is made in Python.
    __hash__ = object.__hash__


class TimerName(NamedTuple):
    """A timer. Setting one again replaces it. Sessions and pending ids have one per member."""

    group_id: str
    kind: TimerKind
    member_id: str = ""


class TimerChange(NamedTuple):
    """A timer that is set, or cancelled if ``deadline_ms`` is None."""

    name: TimerName
    deadline_ms: int | None


class Answered(NamedTuple):
    """The answer to a request, whether it came just now or has waited."""

    waiter: Waiter
    answer: object


@dataclass(frozen=True, slots=True)
class GroupAppend:
    """One batch for a partition of ``__consumer_offsets``, to be appended only in ``leader_epoch`` and with acks=all.

    ``purpose`` is what its result is for. With a producer id the batch is transactional and has no sequence.
    """

    partition: int
    leader_epoch: int
    group_id: str
    records: Records
    purpose: Purpose
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's keys of the same names, with Kafka's defaults."""

    offsets_topic_num_partitions: int = 50
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = (1 << 31) - 1
    #: Of what members tell; not a key of Kafka's.
    group_max_bytes: int = 10_485_760
    #: Of all groups together, with what they have committed; not a key of Kafka's either.
    groups_max_bytes: int = 134_217_728
    #: What a batch may have: what certainly does not fit is refused before it is made.
    message_max_bytes: int = 1_048_588
    group_initial_rebalance_delay_ms: int = 3_000
    #: For how long a new member's first JoinGroup may wait; a client that is gone is not noticed sooner.
    new_member_join_timeout_ms: int = 300_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000


class GroupDecision:
    """All that follows from one event at ``now_ms``."""

    __slots__ = ("answers", "appends", "now_ms", "settings", "timers")

    def __init__(self, settings: GroupSettings, now_ms: int) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self.answers: list[Answered] = []
        self.timers: list[TimerChange] = []
        self.appends: list[GroupAppend] = []

    def __repr__(self) -> str:
        return f"<GroupDecision {self.answers} {self.timers} {len(self.appends)} appends>"

    def answer(self, waiter: Waiter, answer: object) -> None:
        self.answers.append(Answered(waiter, answer))

    def set_timer(self, name: TimerName, deadline_ms: int) -> None:
        self.timers.append(TimerChange(name, deadline_ms))

    def cancel_timers(self, names: Iterable[TimerName]) -> None:
        self.timers.extend(TimerChange(name, None) for name in names)
