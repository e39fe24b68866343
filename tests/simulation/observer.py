"""StateObserver: sees every write of a partition's state in ZooKeeper, and what must hold of them.

Owns that: leader epochs do not fall, and a leader epoch has one leader. Two controllers that overwrite each other break
it long before a record is lost. It also knows the unclean elections, by what they are: the new leader was not in sync.
One that no setting allows is a finding, since the oracle would otherwise excuse what it cut off.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container

from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.store import NoNodeError
from cluster.metadata.znodes import StateNode

_STATE = re.compile(r"/brokers/topics/(.+)/partitions/(\d+)/state")

#: (topic, partition number)
_Key = tuple[str, int]


class StateObserver:
    """A client of the tree. ``found`` is told (name, text) of what is wrong, ``count`` what there was.
    ``unclean_allowed`` says whether a replica that is not in sync may lead."""

    def __init__(
        self,
        tree: MemoryTree,
        found: Callable[[str, str], None],
        count: Callable[[str], None] = lambda what: None,
        *,
        unclean_allowed: bool = True,
    ) -> None:
        self._tree = tree
        self._found = found
        self._count = count
        self._unclean_allowed = unclean_allowed
        self._latest: dict[_Key, StateNode] = {}
        #: (partition, leader epoch) -> leader
        self._leaders: dict[tuple[_Key, int], int] = {}
        self._without: Counter[tuple[_Key, int]] = Counter()
        #: Partition -> (leader epoch, leader) of each of its unclean elections.
        self.unclean: dict[_Key, list[tuple[int, int]]] = {}
        tree.open_session(self)

    def __repr__(self) -> str:
        return f"<StateObserver of {len(self._latest)} partitions>"

    def session_ended(self, session_id: int) -> None:
        """Nobody ends it."""

    def node_changed(self, path: str, *, children: bool) -> None:
        match = None if children else _STATE.fullmatch(path)
        if match is None:
            return
        key = (match[1], int(match[2]))
        try:
            data, _ = self._tree.get(path)
        except NoNodeError:
            self._forget(key)
            return
        self._look(key, StateNode.decode(path, data))

    def _forget(self, key: _Key) -> None:
        """Its topic is deleted; another of its name begins with leader epoch 0."""
        self._latest.pop(key, None)
        self.unclean.pop(key, None)
        # Nobody counts on anybody for it any more, also if another of its name is there at the next look (seed 426).
        self._count_without(key, ())
        self._leaders = {known: leader for known, leader in self._leaders.items() if known[0] != key}

    def _look(self, key: _Key, state: StateNode) -> None:
        name = f"{key[0]}-{key[1]}"
        latest = self._latest.get(key)
        self._latest[key] = state
        if latest is not None:
            if state.leader_epoch < latest.leader_epoch:
                text = f"{name}: leader epoch {state.leader_epoch} was written over {latest.leader_epoch}"
                self._found("epoch-regression", text)
            self._classify(key, latest, state)
        leader = self._leaders.setdefault((key, state.leader_epoch), state.leader)
        if leader != state.leader:
            text = f"{name}: leader epoch {state.leader_epoch} was {leader}'s, and {state.leader} was written"
            self._found("split-brain", text)
        self._count_without(key, state.isr)

    def _count_without(self, key: _Key, isr: Container[int]) -> None:
        # Broker ids are small; who has no replica is out as well.
        for broker_id in range(1, 8):
            if broker_id not in isr:
                self._without[key, broker_id] += 1

    def _classify(self, key: _Key, before: StateNode, after: StateNode) -> None:
        if len(before.isr) != len(after.isr):
            self._count(f"ISR of {len(after.isr)}")
        if after.leader < 0:
            self._count("partition without a leader")
        elif after.leader not in before.isr:
            self._count("election: unclean")
            if not self._unclean_allowed:
                text = f"{key[0]}-{key[1]}: {after.leader} leads epoch {after.leader_epoch}, in sync were {before.isr}"
                self._found("unclean-election", text)
            self.unclean.setdefault(key, []).append((after.leader_epoch, after.leader))
        elif after.leader != before.leader:
            self._count("election: clean")

    def written_without(self, key: _Key, broker_id: int) -> int:
        """How many states were written in which a broker is not in sync; the end of a topic is one of them."""
        return self._without[key, broker_id]

    def unclean_before(self, key: _Key, leader_epoch: int) -> int:
        """How many unclean elections lie before an epoch or began it."""
        return sum(epoch <= leader_epoch for epoch, _ in self.unclean.get(key, ()))
