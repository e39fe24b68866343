"""``leaders.jsonl``: who led each partition, as the conductor saw it. Owns the asking again and again, and the file.

It is the witness of elections that is independent of the logs: which epochs there were, and between which two looks
each began. Brokers are asked on their control listeners, which no fault cuts.
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

#: The verdict knows the time of an election only as well as this (docs/verifier.md); each look asks every broker.
LOOK_EVERY_S = 0.25


class LeaderWatch:
    """Writes a line for each partition of a topic whose leader, leader epoch or ISR is not that of the look before."""

    def __init__(self, observer: Observer, clock: Clock, storage: Storage, path: str, topic: str) -> None:
        self._observer = observer
        self._clock = clock
        self._storage = storage
        self._path = path
        self._topic = topic
        self._known: dict[int, ObservedPartition] = {}
        self._seen_ns: dict[int, int] = {}

    async def run(self) -> None:
        """Look until cancelled. A look that fails is repeated; it does not affect the experiment."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """One look; what has changed since the one before is in the file when this returns."""
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
        """The lines of one look. ``before_ns``: the last look that still saw what was before, None for the first.

        An answer with a lower epoch than is known comes from a broker that has not heard yet: no news.
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
