"""``leaders.jsonl``: the leader, leader epoch and ISR of each partition, as brokers reported them during the run.

This evidence of elections is independent of the logs: it shows which epochs existed, and between which two polls each
began. Polls the brokers on their control listeners, which no fault cuts. Owns the polling and the file. Does not own
what the verdict makes of it (``verifier.witness``).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping

from chaos.conductor.observed_cluster import ObservedPartition
from chaos.conductor.observer import Observer
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

#: Time between two polls, which is how exactly the verdict knows the time of an election (docs/verifier.md). Each poll
#: asks every broker.
LOOK_EVERY_S = 0.25


class LeaderWatch:
    """Polls a topic. Writes a line for each partition whose leader, leader epoch or ISR changed since the last poll."""

    def __init__(self, observer: Observer, clock: Clock, storage: Storage, path: str, topic: str) -> None:
        self._observer = observer
        self._clock = clock
        self._storage = storage
        self._path = path
        self._topic = topic
        self._known: dict[int, ObservedPartition] = {}
        self._seen_ns: dict[int, int] = {}

    async def run(self) -> None:
        """Poll until cancelled. A poll that fails does not affect the experiment."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Poll once. Changes since the last poll are in the file when this returns."""
        asked_ns = self._clock.monotonic_ns()
        try:
            view = await self._observer.view()
        except OSError as error:
            logger.debug("could not ask for the leaders: %r", error)
            return
        told_ns = self._clock.monotonic_ns()
        for entry in self.changes(view.partitions, asked_ns, told_ns):
            self._storage.append_line(self._path, json.dumps(entry))

    def changes(self, seen: Mapping[int, ObservedPartition], asked_ns: int, told_ns: int) -> list[dict[str, object]]:
        """The entries of one poll, which began at ``asked_ns`` and was answered at ``told_ns``.

        ``before_ns`` in an entry is when the last poll began that saw the previous state; None in the first entry of a
        partition. Ignores an answer with a lower epoch than is known: that broker has not learned of the election yet.
        """
        entries: list[dict[str, object]] = []
        for partition, now in sorted(seen.items()):
            before = self._known.get(partition)
            if before is not None and now.leader_epoch < before.leader_epoch:
                continue
            if now != before:
                entries.append(
                    {
                        "time_ns": told_ns,
                        "before_ns": self._seen_ns.get(partition),
                        "topic": self._topic,
                        "partition": partition,
                        "leader": now.leader,
                        "leader_epoch": now.leader_epoch,
                        "isr": list(now.isr),
                    }
                )
            self._known[partition] = now
            self._seen_ns[partition] = asked_ns
        return entries
