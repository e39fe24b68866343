"""The interfaces of what a fault can hit: processes, and the load. Owns only the interfaces.

``chaos.conductor`` implements them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal, NamedTuple, Protocol

MemberEnd = Literal["crash", "leave", "restart"]
#: A part of the load that a fault can hit: its producers, its live readers, or the members of its group.
LoadPart = Literal["producers", "readers", "members"]
#: What a workload must have for faults with ``needs_load``, in words. (Every load has producers and readers.)
WORDS_OF_PARTS: Mapping[LoadPart, str] = {
    "producers": "transactional producers",
    "readers": "readers",
    "members": "members of a group",
}


class ProcessLife(Enum):
    """What is known about a broker's process.

    For a broker that gapless did not start, it may be unknown whether it runs (docs/target.md "Processes").
    """

    RUNS = "runs"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Process(Protocol):
    """What a fault may do to the process of a broker, of ZooKeeper, or of the load.

    Methods that send a signal also wait until it has taken effect. They must be called in a thread, because a blocked
    conductor would look like an overloaded one.
    """

    @property
    def pid(self) -> int: ...

    def is_running(self) -> bool: ...

    def kill(self) -> None: ...

    def suspend(self) -> None: ...

    def resume(self) -> None: ...

    def is_suspended(self) -> bool: ...


class ProducerSeen(NamedTuple):
    """The producer of a transactional id, as the coordinator reports it. ``timeout_ms`` limits its transactions."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int


class SeenMember(NamedTuple):
    """A member of a group, as the coordinator reports it. ``instance_id`` is None unless the member is static."""

    member_id: str
    client_id: str
    instance_id: str | None


class LoadUnderTest(Protocol):
    """What a fault may observe about the load's processes, and do to them. Their histories remain evidence."""

    def processes(self, part: LoadPart) -> tuple[str, ...]:
        """The names of the processes that run."""
        ...

    def process(self, name: str) -> Process: ...

    async def acknowledged(self, name: str) -> int:
        """How many records of the process have been acknowledged, according to its latest figures."""
        ...

    async def last_acked_ns(self, name: str, partition: int) -> int:
        """When a record of the process was last acknowledged in this partition of the run's topic, in monotonic ns.

        According to its latest figures; 0 if that never happened.
        """
        ...

    async def handed(self, name: str) -> int:
        """How many records the process has read, according to its latest figures."""
        ...

    async def kill(self, name: str) -> None:
        """SIGKILL the process, and note that its death was intended."""
        ...

    async def end_members(self, end: MemberEnd, names: Sequence[str], absence_s: float) -> int:
        """Order these members of the group, named by ``client.id``, to end now, in the way that ``end`` says.

        Their places stay empty for ``absence_s`` seconds. Returns the number of the order, which their successors
        report.
        """
        ...
