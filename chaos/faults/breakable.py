"""What a fault can hit: processes, and of the load its producers and members. Owns only the shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

MemberEnd = Literal["crash", "leave", "restart"]
#: What of a load a fault can hit: its transactional producers, or the members of its group.
LoadPart = Literal["producers", "members"]
WORDS_OF_PARTS: Mapping[LoadPart, str] = {"producers": "transactional producers", "members": "members of a group"}


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
    """A transactional id as its coordinator knows it: whose turn it is, and how long a transaction may be open."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int


class SeenMember(NamedTuple):
    """A member of a group as its coordinator knows it. ``instance_id``: of a static one."""

    member_id: str
    client_id: str
    instance_id: str | None


class LoadUnderTest(Protocol):
    """What a fault may see of the load's processes, and do to them. Their histories stay evidence."""

    def processes(self, part: LoadPart) -> tuple[str, ...]:
        """The names of those that run."""
        ...

    def process(self, name: str) -> Process: ...

    async def acknowledged(self, name: str) -> int:
        """How many records the process has had acknowledged, as it last said itself."""
        ...

    async def end_members(self, end: MemberEnd, names: Sequence[str], absence_s: float) -> int:
        """Have these members of the group, by their ``client.id``, end like that, now.

        Their places are empty for a while. The number of the order, which those who take the places tell.
        """
        ...
