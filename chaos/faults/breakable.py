"""What a fault can hit: processes, and the producers and members of the load. Owns only the shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal, NamedTuple, Protocol

MemberEnd = Literal["crash", "leave", "restart"]
#: What of a load a fault can hit: its producers, its live readers, or the members of its group.
LoadPart = Literal["producers", "readers", "members"]
#: What a workload must have for the faults that need it (``needs_load``). Every load has producers and readers.
WORDS_OF_PARTS: Mapping[LoadPart, str] = {
    "producers": "transactional producers",
    "readers": "readers",
    "members": "members of a group",
}


class ProcessLife(Enum):
    """What is known of a broker's process: of one that others started, it may be neither that it runs nor that it
    ended (docs/target.md "Processes")."""

    RUNS = "runs"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Process(Protocol):
    """What a fault may do to the process of a broker, of ZooKeeper, or of the load.

    What sends a signal also waits until it has taken effect: it is called in a thread, since a conductor that stands
    still meanwhile would look like an overloaded one.
    """

    @property
    def pid(self) -> int: ...

    def is_running(self) -> bool: ...

    def kill(self) -> None: ...

    def suspend(self) -> None: ...

    def resume(self) -> None: ...

    def is_suspended(self) -> bool: ...


class ProducerSeen(NamedTuple):
    """A transactional id as its coordinator knows it: its producer, and how long a transaction may be open."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int


class SeenMember(NamedTuple):
    """A member of a group as its coordinator knows it. ``instance_id``: if it is static."""

    member_id: str
    client_id: str
    instance_id: str | None


class LoadUnderTest(Protocol):
    """What a fault may observe of the load's processes, and do to them. Their histories remain evidence."""

    def processes(self, part: LoadPart) -> tuple[str, ...]:
        """The names of those that are running."""
        ...

    def process(self, name: str) -> Process: ...

    async def acknowledged(self, name: str) -> int:
        """How many records the process has had acknowledged, by its own latest figure."""
        ...

    async def last_acked_ns(self, name: str, partition: int) -> int:
        """When the process last had a record acknowledged in this partition of the run's topic, by the same; 0: never
        yet."""
        ...

    async def handed(self, name: str) -> int:
        """How many records the process has been handed, by its own latest figure."""
        ...

    async def kill(self, name: str) -> None:
        """SIGKILL the process; that it died is then no accident of the run."""
        ...

    async def end_members(self, end: MemberEnd, names: Sequence[str], absence_s: float) -> int:
        """End these members of the group, named by ``client.id``, in this way, now.

        Their places stay empty for a while. Returns the number of the order, which their successors report.
        """
        ...
