"""``alter-config``: a setting of a topic is changed under load and set back, by IncrementalAlterConfigs.

``segment.ms`` is changed on the run's own topic, whose logs then roll several times a second. A smaller
``max.message.bytes`` would make records of the load fail permanently, so it is changed on another topic, where a record
must then be refused. ``min.insync.replicas`` is never changed: a value above the number of replicas has the same effect
as that number, so it shows only while a replica is missing; a lower value could lose records that the run counts as
safe.
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.accepted import one_of
from chaos.faults.base import PreconditionMissing, Probe, Reach
from chaos.faults.topics_beside import TopicsBeside

_SEGMENT_MS, _MAX_BYTES = "segment.ms", "max.message.bytes"
_KEYS = (_SEGMENT_MS, _MAX_BYTES)
#: At least this many segments must be closed while the fault lasts.
_ROLLS = 2
_ROLL_EVERY_MS = 200
#: The segment size of a topic if no broker reports it.
_NEVER_FULL = 1 << 62
_LIMIT_BYTES = 1_000

#: The size of the record that is then refused, and the error that refuses it.
_TOO_LARGE_BYTES = 5 * _LIMIT_BYTES
_REFUSED = "MESSAGE_TOO_LARGE"


class AlterConfig(TopicsBeside):
    """Bites when every broker describes the other value, and it shows: segments are closed before they are full, or a
    record is refused."""

    name = "alter-config"
    summary = "change a setting of a topic under load (segment.ms or max.message.bytes), then change it back"
    reach: ClassVar[Reach] = "journals"
    duration_s = (2.0, 3.5)
    recovery_s = 2.0
    accepts = (one_of("key", *_KEYS),)

    _is_changed = _is_taken = False

    async def choose(self) -> str:
        self.start()
        await self._all_run()
        drawn = self.random.choice(_KEYS)
        self._key = str(self.injection.parameters.get("key", drawn))
        self._topic = self.cluster.topic if self._key == _SEGMENT_MS else self.topic_name()
        if self._key == _SEGMENT_MS:
            self._leader_id, _ = await self._leader()
            config = await self.orders.config_on(self._leader_id, self._topic)
            if not config:
                raise PreconditionMissing(f"the leader of partition {self._partition} does not describe its topic")
            self._segment_bytes = int(config.get("segment.bytes", _NEVER_FULL))
        self._value = str(_ROLL_EVERY_MS if self._key == _SEGMENT_MS else _LIMIT_BYTES)
        return f"topic {self._topic}, {self._key} {self._value}"

    async def inject(self) -> None:
        if self._topic != self.cluster.topic:
            await self.make(self._topic, 1)
        self._former = (await self.orders.overrides(self._topic)).get(self._key)
        self._described = await self._value_told()
        self._segments, self._bytes = await self._closed(), await self._held()
        self._is_changed = True
        await self.orders.set_config(self._topic, {self._key: self._value})

    async def bites(self) -> Probe:
        agreeing = await self.configured(self._topic, {self._key: self._value})
        everyone = agreeing == len(self.cluster.broker_ids)
        if self._key == _SEGMENT_MS:
            closed, full = await self._rolled()
            seen: dict[str, object] = {"key": self._key, "brokers_agreeing": agreeing}
            seen |= {"closed_segments": closed, "full_segments": full}
            return Probe(everyone and closed >= _ROLLS and closed > full, seen)
        refusal = ""

        async def refused() -> bool:
            nonlocal refusal
            refusal = (await self.orders.round_trip(self._topic, 0, _TOO_LARGE_BYTES)).refusal
            return refusal == _REFUSED

        # a broker describes the new value a moment before its logs use it
        is_refused = await self.wait(refused)
        seen = {"key": self._key, "brokers_agreeing": agreeing, "refusal": refusal}
        return Probe(everyone and is_refused, seen)

    async def heal(self) -> None:
        if self._is_changed:
            await self.orders.set_config(self._topic, {self._key: self._former})
            self._agreeing = await self.configured(self._topic, {self._key: self._described})
            if self._key != _SEGMENT_MS:
                # before the topic is deleted, check that the record is accepted again
                self._is_taken = await self.wait(self._taken)
        await super().heal()

    async def gone(self) -> Probe:
        taken = self._key == _SEGMENT_MS or self._is_taken
        everyone = self._agreeing == len(self.cluster.broker_ids)
        left = await super().gone()
        seen = {"key": self._key, "brokers_agreeing": self._agreeing, "accepted": taken, **left.seen}
        return Probe(left.effective and everyone and taken, seen)

    async def _taken(self) -> bool:
        return (await self.orders.round_trip(self._topic, 0, _TOO_LARGE_BYTES)).was_read

    async def _value_told(self) -> str:
        for broker_id in self.cluster.broker_ids:
            if (told := await self.orders.config_on(broker_id, self._topic)) is not None and self._key in told:
                return told[self._key]
        raise TimeoutError(f"no broker describes {self._key} of {self._topic}")

    async def _closed(self) -> int:
        """The number of segments in the leader's log. Retention is unchanged, so none is deleted meanwhile."""
        if self._key != _SEGMENT_MS:
            return 0
        return await self.cluster.machine(self._leader_id).segments(f"{self.cluster.topic}-{self._partition}")

    async def _held(self) -> int:
        """The bytes of the leader's log."""
        if self._key != _SEGMENT_MS:
            return 0
        return (await self.held(self._topic, self._partition)).get(self._leader_id, 0)

    async def _rolled(self) -> tuple[int, int]:
        """How many segments were closed since the injection, and how many of them may have been full.

        Waits up to ``DONE_MS`` until enough were closed that were not full.
        """
        closed = full = 0

        async def enough() -> bool:
            nonlocal closed, full
            closed = await self._closed() - self._segments
            # the segment that was open at the injection may have been almost full
            full = 1 + max(0, await self._held() - self._bytes) // self._segment_bytes
            return closed >= _ROLLS and closed > full

        await self.wait(enough)
        return closed, min(closed, full)
