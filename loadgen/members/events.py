"""The events of a member of a group, as its client reports them, and the interface of such a client. Owns only these.

Everything is of one topic, so that a partition is a number. Times are the clock's monotonic nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from loadgen.clients.base import Watermarks
from loadgen.spans import ReadRecord
from verifier.evidence.history import HistoryOutcome

#: Most records between two commits.
POLL_RECORDS = 500


class Assigned(NamedTuple):
    """The member got these partitions, in addition to those that it had. ``generation`` is -1 if unknown."""

    partitions: Sequence[int]
    member_id: str
    generation: int
    time_ns: int


class PositionKnown(NamedTuple):
    """The offset at which the member begins to read a partition that it was assigned at ``begin_ns``."""

    partition: int
    offset: int
    begin_ns: int
    end_ns: int


class Revoked(NamedTuple):
    """The member lost these partitions, each with the next offset that it would have read (-1 if none)."""

    offsets: Mapping[int, int]
    is_lost: bool
    time_ns: int


class Committed(NamedTuple):
    """The outcome of a commit of ``offsets``, which are by partition."""

    offsets: Mapping[int, int]
    outcome: HistoryOutcome
    error: str | None
    generation: int
    begin_ns: int
    end_ns: int


class Delivered(NamedTuple):
    """The records that a poll returned, in this order."""

    records: Sequence[ReadRecord]
    watermarks: Mapping[int, Watermarks]
    begin_ns: int
    end_ns: int


class TransactionEnd(NamedTuple):
    """One attempt to end a transaction."""

    f: Literal["commit", "abort"]
    outcome: HistoryOutcome
    error: str | None
    begin_ns: int
    end_ns: int


class Transacted(NamedTuple):
    """A transaction: its ``inputs`` are the first and last offset of each partition, and how they were added to it.

    ``is_committed``: so that the member continues. Otherwise what was delivered is another's to transform.
    """

    inputs: Mapping[int, tuple[int, int]]
    added: HistoryOutcome
    error: str | None
    begin_ns: int
    added_ns: tuple[int, int]
    ends: Sequence[TransactionEnd]

    @property
    def is_committed(self) -> bool:
        return any((end.f, end.outcome) == ("commit", "ok") for end in self.ends)


class Failed(NamedTuple):
    """The client reported an error. ``is_final``: this consumer cannot continue."""

    text: str
    is_final: bool = False


MemberEvent = Assigned | PositionKnown | Revoked | Committed | Delivered | Transacted | Failed


class MemberClient(Protocol):
    """One consumer in a group. Its calls block, and return what happened, in order; none raises what the client does.

    For one thread at a time.
    """

    @property
    def is_cooperative(self) -> bool:
        """Whether other greenlets run while it waits. If not, its calls need a thread."""
        ...

    def poll(self, timeout_s: float) -> list[MemberEvent]:
        """Take part in rebalances and fetch records. Commits before partitions are revoked."""
        ...

    def pass_on(self) -> None:
        """Log the client's messages in the thread of the caller. Never waits."""
        ...

    def commit(self) -> list[MemberEvent]:
        """Commit everything that was delivered, and wait for the outcome. Does nothing if there is nothing new."""
        ...

    def close(self) -> list[MemberEvent]:
        """Commit, leave the group (a static member stays in it), and close the consumer."""
        ...

    def abandon(self) -> list[MemberEvent]:
        """Crash, for the group: neither commit nor leave."""
        ...
