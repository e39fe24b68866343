"""``stable_offsets.jsonl``: how long each partition's last stable offset stood still below its high watermark.

Readers of committed records wait at that offset until the transaction that begins there ends. This module polls the
brokers, merges the answers into standstills, and writes the file. Does not own the requests
(``chaos.conductor.stable_survey``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from chaos.conductor.observer import Observer
from chaos.conductor.stable_survey import StableOffsets
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from cluster.topic_partition import TopicPartition

#: Time between two polls. Each one sends every broker two requests.
LOOK_EVERY_S = 1.0
#: Shorter standstills are not written: an ordinary transaction takes that long.
_LEAST_NS = 1_000_000_000


@dataclass(slots=True)
class _Standstill:
    """A last stable offset that did not move between the first and the last poll that saw it."""

    offset: int
    since_ns: int
    until_ns: int


class Standstills:
    """Merges polls into standstills.

    A poll without an answer about a partition changes nothing. If the offset moved meanwhile, the next answer shows it.
    """

    def __init__(self) -> None:
        self._open: dict[TopicPartition, _Standstill] = {}

    def look(self, seen: Mapping[TopicPartition, StableOffsets], now_ns: int) -> list[dict[str, object]]:
        """Add one poll. Returns the entries of the standstills that it ends.

        A standstill ends when the offset moves or reaches the high watermark.
        """
        ended = []
        for place, now in sorted(seen.items()):
            before = self._open.get(place)
            if before is not None and before.offset == now.last_stable:
                before.until_ns = now_ns
            if before is not None and (before.offset != now.last_stable or now.last_stable >= now.high_watermark):
                before.until_ns = now_ns
                ended.append((place, self._open.pop(place)))
            if now.last_stable < now.high_watermark and place not in self._open:
                self._open[place] = _Standstill(now.last_stable, now_ns, now_ns)
        return [entry for place, each in ended for entry in _entries(place, each)]

    def end(self) -> list[dict[str, object]]:
        """The entries of the standstills that never ended."""
        return [entry for place, each in sorted(self._open.items()) for entry in _entries(place, each)]


def _entries(place: TopicPartition, each: _Standstill) -> list[dict[str, object]]:
    """The entry of one standstill; empty if it was too short to matter."""
    if each.until_ns - each.since_ns < _LEAST_NS:
        return []
    where = {"topic": place[0], "partition": place[1], "offset": each.offset}
    return [{**where, "since_ns": each.since_ns, "until_ns": each.until_ns}]


class StableWatch:
    """Polls all partitions of some topics and writes each standstill to the file, and at the end the number of polls.

    ``partitions`` maps each topic to its number of partitions.
    """

    def __init__(
        self, observer: Observer, clock: Clock, storage: Storage, path: str, partitions: Mapping[str, int]
    ) -> None:
        self._observer = observer
        self._clock = clock
        self._storage = storage
        self._path = path
        self._places = [(topic, number) for topic, count in partitions.items() for number in range(count)]
        self._standstills = Standstills()
        self._looks = 0

    async def run(self) -> None:
        """Poll until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            self._write([*self._standstills.end(), {"looks": self._looks}])

    async def look(self) -> None:
        """Poll once. Standstills that ended since the last poll are in the file when this returns."""
        seen = await self._observer.stable_offsets(self._places)
        self._looks += bool(seen)
        self._write(self._standstills.look(seen, self._clock.monotonic_ns()))

    def _write(self, entries: list[dict[str, object]]) -> None:
        for entry in entries:
            self._storage.append_line(self._path, json.dumps(entry))
