"""StateObserver: sees every write of a partition's state in ZooKeeper, and what must hold of them.

Owns that: leader epochs do not fall, and a leader epoch has one leader. Two controllers that overwrite each other break
it long before a record is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.store import NoNodeError
from cluster.metadata.znodes import StateNode

_STATE = re.compile(r"/brokers/topics/(.+)/partitions/(\d+)/state")


class StateObserver:
    """A client of the tree. ``found`` is told (name, text) of what is wrong."""

    def __init__(self, tree: MemoryTree, found: Callable[[str, str], None]) -> None:
        self._tree = tree
        self._found = found
        self._latest: dict[str, int] = {}
        #: (path, leader epoch) -> leader
        self._leaders: dict[tuple[str, int], int] = {}
        tree.open_session(self)

    def __repr__(self) -> str:
        return f"<StateObserver of {len(self._latest)} partitions>"

    def session_ended(self, session_id: int) -> None:
        """Nobody ends it."""

    def node_changed(self, path: str, *, children: bool) -> None:
        match = None if children else _STATE.fullmatch(path)
        if match is None:
            return
        try:
            data, _ = self._tree.get(path)
        except NoNodeError:
            return
        state = StateNode.decode(path, data)
        name = f"{match[1]}-{match[2]}"
        latest = self._latest.get(path, 0)
        if state.leader_epoch < latest:
            self._found("epoch-regression", f"{name}: leader epoch {state.leader_epoch} was written over {latest}")
        self._latest[path] = state.leader_epoch
        leader = self._leaders.setdefault((path, state.leader_epoch), state.leader)
        if leader != state.leader:
            text = f"{name}: leader epoch {state.leader_epoch} was {leader}'s, and {state.leader} was written"
            self._found("split-brain", text)
