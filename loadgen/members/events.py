"""What happens to a member of a group, as its client tells it, and what is asked of a client. Owns the shapes.

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
    """The member has these partitions from now on, besides those that it had. ``generation``: -1 if it is not told."""

    partitions: Sequence[int]
    member_id: str
    generation: int
    time_ns: int


class PositionKnown(NamedTuple):
    """Where it begins to read a partition that it was assigned at ``begin_ns``."""

    partition: int
    offset: int
    begin_ns: int
    end_ns: int


class Revoked(NamedTuple):
    """It no longer has these, each with the offset that it had come to (-1: none)."""

    offsets: Mapping[int, int]
    is_lost: bool
    time_ns: int


class Committed(NamedTuple):
    """What became of a commit of ``offsets``, by partition."""

    offsets: Mapping[int, int]
    outcome: HistoryOutcome
    error: str | None
    generation: int
    begin_ns: int
    end_ns: int


class Delivered(NamedTuple):
    """What a poll returned, in this order."""

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
    """The client reported an error. ``is_final``: this consumer can do no more."""

    text: str
    is_final: bool = False


MemberEvent = Assigned | PositionKnown | Revoked | Committed | Delivered | Transacted | Failed


class MemberClient(Protocol):
    """One consumer in a group. Its calls block, and return what happened, in order; none raises what the client does.

    For one thread at a time.
    """

    @property
    def is_cooperative(self) -> bool:
        """Whether its waiting lets other greenlets run; else its calls need a thread."""
        ...

    def poll(self, timeout_s: float) -> list[MemberEvent]:
        """Be a member: take part in rebalances, and take records. What is revoked is committed before."""
        ...

    def pass_on(self) -> None:
        """Log what the client had to say, in the thread of the caller; never waits."""
        ...

    def commit(self) -> list[MemberEvent]:
        """Commit everything that was delivered, and wait until that is known; nothing if there is nothing new."""
        ...

    def close(self) -> list[MemberEvent]:
        """Commit, and leave the group (a static member stays in it). The consumer is gone then."""
        ...

    def abandon(self) -> list[MemberEvent]:
        """Crash, for the group: no commit, no word to the coordinator."""
        ...
