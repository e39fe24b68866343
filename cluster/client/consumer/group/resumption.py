"""Resumption: partitions that were assigned continue where their group has committed.

Owns the question for committed offsets that is under way, in the program's thread. Does not own positions
(``positions``) nor auto.offset.reset. Kafka's ConsumerCoordinator has it as ``initWithCommittedOffsetsIfNeeded``.
"""

from __future__ import annotations

from cluster.client.consumer.group.commits import Commits
from cluster.client.consumer.group.offset_calls import FetchCall
from cluster.client.consumer.positions import Positions
from cluster.topic_partition import TopicPartition


class Resumption:
    """NOT thread-safe."""

    def __init__(self, commits: Commits, positions: Positions) -> None:
        self._commits = commits
        self._positions = positions
        self._call: FetchCall | None = None
        self._numbers: dict[TopicPartition, int] = {}

    def __repr__(self) -> str:
        return f"Resumption({self._call!r})"

    def step(self) -> None:
        """Take in what has come, and ask for what is not known, without waiting. Raises what refuses an answer."""
        call = self._call
        if call is not None:
            if not self._is_wanted():
                self._commits.end(call)
                self._call = None
            elif call.is_done:
                self._call = None
                self._commits.is_done(call)
                for key, found in call.found.items():
                    self._positions.resume(key, self._numbers[key], found)
        if self._call is None and self._positions.awaiting:
            self._numbers = dict(self._positions.awaiting)
            self._call = self._commits.begin_fetch(list(self._numbers))

    def _is_wanted(self) -> bool:
        """Whether someone still waits for any part of the answer."""
        return any(self._positions.awaiting.get(key) == number for key, number in self._numbers.items())
