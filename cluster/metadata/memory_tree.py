"""The server side of the metadata store in memory: nodes, versions, sessions, watches.

Owns ZooKeeper's semantics that the cluster leans on: versions, czxids, ephemeral nodes bound to a session, multi as
all or nothing, watches. All calls are immediate; what a link does to them is ``memory``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from cluster.metadata.limits import MAX_REQUEST_BYTES
from cluster.metadata.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    Stat,
    StoreError,
)

_FIRST_SESSION_ID = 0x1000


class Client(Protocol):
    """What the tree tells the client of a session."""

    def session_ended(self, session_id: int) -> None: ...

    def node_changed(self, path: str, *, children: bool) -> None: ...


class Seen(NamedTuple):
    """A node as it was."""

    data: bytes
    stat: Stat
    children: frozenset[str]


@dataclass(slots=True)
class _TreeNode:
    data: bytes
    created_zxid: int
    modified_zxid: int
    ephemeral_owner: int = 0
    version: int = 0
    children_created: int = 0
    children: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        return Stat(self.version, self.created_zxid, self.ephemeral_owner, self.modified_zxid)


class MemoryTree:
    """The server: nodes, sessions, watches. All calls are immediate."""

    def __init__(self, max_request_bytes: int = MAX_REQUEST_BYTES) -> None:
        #: ``jute.maxbuffer``: anyone who sends more loses its connection.
        self.max_request_bytes = max_request_bytes
        self._nodes: dict[str, _TreeNode] = {"/": _TreeNode(b"", 0, 0)}
        self._zxid = 0
        self._next_session_id = _FIRST_SESSION_ID
        self._sessions: dict[int, Client] = {}

    def __repr__(self) -> str:
        return f"MemoryTree(nodes={len(self._nodes)}, sessions={len(self._sessions)}, zxid={self._zxid})"

    def open_session(self, client: Client) -> int:
        self._next_session_id += 1
        self._sessions[self._next_session_id] = client
        return self._next_session_id

    def is_open(self, session_id: int) -> bool:
        return session_id in self._sessions

    def end_session(self, session_id: int) -> None:
        """Close or expire: its ephemeral nodes go, watchers learn, and its own client if it is connected."""
        client = self._sessions.pop(session_id, None)
        if client is None:
            return
        self._zxid += 1
        owned = [path for path, node in self._nodes.items() if node.ephemeral_owner == session_id]
        for path in sorted(owned):
            self._remove(path)
            self._notify_removed(path)
        client.session_ended(session_id)

    def look_at(self, path: str) -> Seen | None:
        """A node as it is now, or None."""
        node = self._nodes.get(path)
        return None if node is None else Seen(node.data, node.stat(), frozenset(node.children))

    def look_at_all(self) -> dict[str, Seen]:
        """All nodes as they are now."""
        return {path: Seen(node.data, node.stat(), frozenset(node.children)) for path, node in self._nodes.items()}

    def get(self, path: str) -> tuple[bytes, Stat]:
        node = self._node(path)
        return node.data, node.stat()

    def exists(self, path: str) -> Stat | None:
        node = self._nodes.get(path)
        return None if node is None else node.stat()

    def children(self, path: str) -> list[str]:
        return sorted(self._node(path).children)

    def create(self, session_id: int, operation: Create, *, sequence: bool = False, make_parents: bool = False) -> str:
        if make_parents:
            parent, _ = split_path(operation.path)
            if parent not in self._nodes:
                self.create(session_id, Create(parent), make_parents=True)
        self._zxid += 1
        path, _ = self._apply_create(session_id, operation, sequence=sequence)
        self._notify_created(path)
        return path

    def multi(self, session_id: int, operations: Sequence[Operation]) -> list[str | Stat | None]:
        """All or nothing, under one zxid."""
        self._zxid += 1
        undo: list[Callable[[], None]] = []
        results: list[str | Stat | None] = []
        try:
            results.extend(self._apply(session_id, operation, undo) for operation in operations)
        except StoreError:
            for step in reversed(undo):
                step()
            raise
        for operation in operations:
            if isinstance(operation, Create):
                self._notify_created(operation.path)
            elif isinstance(operation, SetData):
                self._notify_data(operation.path)
            elif isinstance(operation, Delete):
                self._notify_removed(operation.path)
        return results

    def _apply(self, session_id: int, operation: Operation, undo: list[Callable[[], None]]) -> str | Stat | None:
        if isinstance(operation, Create):
            path, revert = self._apply_create(session_id, operation)
            undo.append(revert)
            return path
        node = self._node(operation.path)
        # A check has no "any version": ZooKeeper compares -1 as it compares all others.
        any_version = operation.version == -1 and not isinstance(operation, Check)
        if not any_version and operation.version != node.version:
            raise BadVersionError(f"{operation.path}: version {node.version}, not {operation.version}")
        if isinstance(operation, Check):
            return None
        if isinstance(operation, SetData):
            undo.append(partial(_restore, node, node.data, node.version, node.modified_zxid))
            node.data, node.version, node.modified_zxid = operation.data, node.version + 1, self._zxid
            return node.stat()
        if node.children:
            raise NotEmptyError(operation.path)
        self._remove(operation.path)
        undo.append(partial(self._insert, operation.path, node))
        return None

    def _apply_create(
        self, session_id: int, operation: Create, *, sequence: bool = False
    ) -> tuple[str, Callable[[], None]]:
        parent_path, _ = split_path(operation.path)
        parent = self._node(parent_path)
        if parent.ephemeral_owner:
            raise StoreError(f"{parent_path} is ephemeral and can have no children")
        path = f"{operation.path}{parent.children_created:010d}" if sequence else operation.path
        if path in self._nodes:
            raise NodeExistsError(path)
        parent.children_created += 1
        self._insert(path, _TreeNode(operation.data, self._zxid, self._zxid, session_id if operation.ephemeral else 0))
        return path, partial(self._remove, path)

    def _node(self, path: str) -> _TreeNode:
        node = self._nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        return node

    def _insert(self, path: str, node: _TreeNode) -> None:
        parent, name = split_path(path)
        self._nodes[path] = node
        self._nodes[parent].children.add(name)

    def _remove(self, path: str) -> None:
        parent, name = split_path(path)
        del self._nodes[path]
        self._nodes[parent].children.discard(name)

    def _notify_created(self, path: str) -> None:
        self._notify_data(path)
        self._notify_children(split_path(path)[0])
        self._notify_children(path)

    def _notify_removed(self, path: str) -> None:
        self._notify_created(path)

    def _notify_data(self, path: str) -> None:
        for client in list(self._sessions.values()):
            client.node_changed(path, children=False)

    def _notify_children(self, path: str) -> None:
        for client in list(self._sessions.values()):
            client.node_changed(path, children=True)


def _restore(node: _TreeNode, data: bytes, version: int, modified_zxid: int) -> None:
    node.data, node.version, node.modified_zxid = data, version, modified_zxid


def split_path(path: str) -> tuple[str, str]:
    """(parent, name)."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name
