"""Watches that last, made of ZooKeeper's that fire once. Pure bookkeeping: it decides when to set one again.

Owns the state of each watch. Does not own the connection: it is told when a watch is in place, has fired, or was lost
with its connection, and calls ``arm`` to have one set. Each call of ``arm`` has a new token; news with an old token
belongs to a watch that a reconnection has replaced.
"""

from __future__ import annotations

from collections.abc import Callable


class Watch:
    """A listener on one path. ``waits_for_creation``: children cannot be watched until the node is there."""

    def __init__(self, path: str, listener: Callable[[], None], *, children: bool) -> None:
        self.path = path
        self.children = children
        self.listener = listener
        self.waits_for_creation = False
        self.token = 0

    def __repr__(self) -> str:
        return f"Watch({self.path}, {'children' if self.children else 'data'}, token={self.token})"


class WatchKeeper:
    """All watches of one store."""

    def __init__(self, arm: Callable[[Watch, int], None]) -> None:
        self._arm = arm
        self._watches: list[Watch] = []

    def add(self, watch: Watch, *, connected: bool) -> None:
        self._watches.append(watch)
        if connected:
            self._arm_again(watch)

    def arm_all(self) -> None:
        """A connection is there: ZooKeeper has forgotten the watches of the former one."""
        for watch in self._watches:
            watch.waits_for_creation = False
            self._arm_again(watch)

    def in_place(self, watch: Watch, token: int, *, again: bool) -> None:
        """The watch is set. The listener is called now, not when it fired: what it reads is then watched.

        ``again``: the node whose creation was awaited is there already, so its children can be watched.
        """
        if token != watch.token:
            return
        if again:
            watch.waits_for_creation = False
            self._arm_again(watch)
        else:
            watch.listener()

    def node_absent(self, watch: Watch, token: int) -> None:
        """Its children cannot be watched: wait for the node to be created."""
        if token == watch.token:
            watch.waits_for_creation = True
            self._arm_again(watch)

    def fired(self, watch: Watch, token: int) -> None:
        if token == watch.token:
            watch.waits_for_creation = False
            self._arm_again(watch)

    def _arm_again(self, watch: Watch) -> None:
        watch.token += 1
        self._arm(watch, watch.token)
