"""``stable_offsets.jsonl``: how long the last stable offset of a partition stood still below the high watermark.

It is where readers of committed records wait, for the transaction that begins there. Owns the asking again and again,
the adding up and the file; the asking itself is ``chaos.conductor.stable_survey``'s.
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

#: Each look asks every broker twice.
LOOK_EVERY_S = 1.0
#: What is over sooner is what a transaction takes.
_LEAST_NS = 1_000_000_000


@dataclass(slots=True)
class _Standstill:
    """It stood at this offset, from the first look to the last one."""

    offset: int
    since_ns: int
    until_ns: int


class Standstills:
    """Adds looks up. A look without an answer about a partition changes nothing: it is where it was, or it shows."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, _Standstill] = {}

    def look(self, seen: Mapping[TopicPartition, StableOffsets], now_ns: int) -> list[dict[str, object]]:
        """The standstills that this look ends: the offset is another one now, or nothing is beyond it."""
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
        return [entry for place, each in ended for entry in _told(place, each)]

    def end(self) -> list[dict[str, object]]:
        """Those that never ended."""
        return [entry for place, each in sorted(self._open.items()) for entry in _told(place, each)]


def _told(place: TopicPartition, each: _Standstill) -> list[dict[str, object]]:
    if each.until_ns - each.since_ns < _LEAST_NS:
        return []
    told = {"topic": place[0], "partition": place[1], "offset": each.offset}
    return [{**told, "since_ns": each.since_ns, "until_ns": each.until_ns}]


class StableWatch:
    """Looks at all partitions of these topics, and writes each standstill down, and at the end how often it looked."""

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
        """Look until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            self._write([*self._standstills.end(), {"looks": self._looks}])

    async def look(self) -> None:
        """One look; what has ended since the one before is in the file when this returns."""
        seen = await self._observer.stable_offsets(self._places)
        self._looks += bool(seen)
        self._write(self._standstills.look(seen, self._clock.monotonic_ns()))

    def _write(self, entries: list[dict[str, object]]) -> None:
        for entry in entries:
            self._storage.append_line(self._path, json.dumps(entry))
