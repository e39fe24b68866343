"""MetadataStore: the seam through which brokers see ZooKeeper. Owns its shape, its values and its errors.

Paths are ZooKeeper's. The forms are ``cluster.metadata.zookeeper`` (kazoo; its callbacks are posted to the loop,
none runs elsewhere) and ``cluster.metadata.memory`` (one shared tree, one session object per broker).
What the nodes mean is known by ``cluster.metadata.znodes``, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class StoreError(Exception):
    """Base of all errors of a metadata store."""


class NoNodeError(StoreError):
    """The path does not exist."""


class NodeExistsError(StoreError):
    """The path exists already."""


class BadVersionError(StoreError):
    """A compare-and-set or a multi's check met another version."""


class NotEmptyError(StoreError):
    """The node has children."""


class TooLargeError(StoreError):
    """More bytes than ZooKeeper takes: nothing was sent."""


class NotWrittenError(StoreError):
    """The connection was lost again and again as this was written, and it was never found there."""


class ConnectionLostError(StoreError):
    """No answer: the operation may or may not have happened. Read back before trying again."""


class SessionExpiredError(StoreError):
    """The session is over; its ephemeral nodes are gone or going."""


class SessionState(Enum):
    """What the store says about its session. SUSPENDED: cut off, the session may still live."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper keeps of a node. ``created_zxid`` of ``/brokers/ids/N`` is that broker's epoch.

    Zxids number the writes of the whole ensemble, so that those of different nodes can be compared.
    """

    version: int
    created_zxid: int
    ephemeral_owner: int
    modified_zxid: int


@dataclass(frozen=True, slots=True)
class Create:
    """An operation of a multi: create a node."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """An operation of a multi: set a node's data if its version is ``version`` (-1: any)."""

    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    """An operation of a multi: delete a node if its version is ``version`` (-1: any)."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """An operation of a multi: fail all unless the node's version is ``version``."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class MetadataStore(Protocol):
    """One session with the store. Every coroutine may raise ConnectionLostError or SessionExpiredError; those that
    write raise TooLargeError for what ``cluster.metadata.limits`` forbids."""

    @property
    def session_id(self) -> int:
        """The live session's id, 0 if there is none. A new session after expiry has another id."""
        ...

    @property
    def session_timeout_ms(self) -> int:
        """As negotiated with the server, which may differ from what was asked."""
        ...

    async def start(self, timeout_ms: int) -> None:
        """Open the first session. Raises ``TimeoutError``."""
        ...

    async def close(self) -> None:
        """End the session: ephemeral nodes go at once."""
        ...

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call ``listener`` on the loop at each change of the session. After EXPIRED a new session follows by
        itself, announced by CONNECTED."""
        ...

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        """Create a node and return its path (with the number if ``sequence``). Raises NodeExistsError, NoNodeError."""
        ...

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Raises NoNodeError."""
        ...

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        """Raises NoNodeError, BadVersionError."""
        ...

    async def delete(self, path: str, version: int = -1) -> None:
        """Raises NoNodeError, BadVersionError, NotEmptyError."""
        ...

    async def exists(self, path: str) -> Stat | None: ...

    async def children(self, path: str) -> list[str]:
        """Names of the children, sorted. Raises NoNodeError."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        """All or nothing. Returns the created path, the new Stat, or None, for each. Raises the error of the first
        operation that fails."""
        ...

    def watch_data(self, path: str, listener: Callable[[], None]) -> None:
        """Call ``listener`` on the loop whenever the node is created, changed or deleted, for the store's life; also
        once when the watch is in place, at first and after each reconnection. It carries no data: read again, and
        no change is missed. Calls may be merged."""
        ...

    def watch_children(self, path: str, listener: Callable[[], None]) -> None:
        """The same for the set of children. The path need not exist yet."""
        ...
