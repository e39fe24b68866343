"""``reassign-partitions``: a partition of the load moves to other brokers, and back, while it is written and read.

If some broker has no replica of the partition, one replica moves there. If every broker has one, a replica is removed
with its data, and later added again without any data. The heal is a move, too, so there are always two moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.faults.accepted import one_of
from chaos.faults.base import PreconditionMissing, Probe
from chaos.faults.order_fault import DELETE_DELAY, SOON_MS, OrderFault

#: The share of the leader's bytes that a new replica must have copied. It is below 1 because the leader still writes.
_COPIED = 0.5


class ReassignPartitions(OrderFault):
    """Bites when all brokers report the new assignment with every replica in sync, the removed replica's data is gone
    from its disk, and a new replica has copied what the leader has."""

    name = "reassign-partitions"
    summary = "move a partition under load to other brokers, and back; a new replica must copy all of it"
    duration_s = (2.5, 4.0)
    recovery_s = 4.0
    #: Until the move back is over, one replica is missing or incomplete.
    hits = "broker"
    needs_sync = True
    least_replicas = 2
    accepts = (one_of("removes", "leader", "follower"),)

    _is_ordered = False

    async def choose(self) -> str:
        await self._all_run()
        await self._full_isrs()
        now = await self.partition_now()
        followers = [each for each in now.replicas if each != now.leader]
        if now.leader not in now.replicas or not followers:
            raise PreconditionMissing(f"partition {self._partition} has no leader with followers")
        drawn = self.random.choice(("leader", "follower"))
        removes = str(self.injection.parameters.get("removes", drawn))
        self._origin = now.replicas
        self._outgoing = now.leader if removes == "leader" else self.random.choice(followers)
        spare = [each for each in self.cluster.broker_ids if each not in now.replicas]
        self._incoming = self.random.choice(spare) if spare else None
        self._target = _moved(self._origin, self._outgoing, self._incoming)
        way = f"{', '.join(map(str, self._origin))} to {', '.join(map(str, self._target))}"
        return f"partition {self._directory}, from replicas {way} ({removes} removed)"

    @property
    def _directory(self) -> str:
        return f"{self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        topic = self.cluster.topic
        self._former_delay = (await self.orders.overrides(topic)).get(DELETE_DELAY)
        self._is_ordered = True
        await self.orders.set_config(topic, {DELETE_DELAY: SOON_MS})
        await self.configured(topic, {DELETE_DELAY: SOON_MS})
        await self.orders.reassign(topic, self._partition, self._target)

    async def bites(self) -> Probe:
        moved = await self._settled(self._target)
        removed = await self._is_removed(self._outgoing)
        copied_bytes = 0 if self._incoming is None else await self._copied(self._incoming)
        seen = {"replicas": list(self._target), "moved": moved, "removed_data": removed, "copied_bytes": copied_bytes}
        if not removed:
            # a directory with the partition's name was never deleted; one with a suffix still waits for its removal
            seen["directories_left"] = await self._left(self._outgoing)
        return Probe(moved and removed and (self._incoming is None or copied_bytes > 0), seen)

    async def heal(self) -> None:
        if not self._is_ordered:
            return
        await self.orders.reassign(self.cluster.topic, self._partition, self._origin)
        if not await self._settled(self._origin):
            raise TimeoutError(f"{self._directory} did not get back to its replicas {list(self._origin)}")
        if self._incoming is not None:
            await self._is_removed(self._incoming)
        await self.orders.set_config(self.cluster.topic, {DELETE_DELAY: self._former_delay})

    async def gone(self) -> Probe:
        back = await self._settled(self._origin)
        copied_bytes = await self._copied(self._outgoing)
        removed = self._incoming is None or await self._is_removed(self._incoming)
        configured = (await self.orders.overrides(self.cluster.topic)).get(DELETE_DELAY) == self._former_delay
        rejoined = await self._rejoined()
        seen = {
            "replicas": list(self._origin),
            "moved": back,
            "removed_data": removed,
            "copied_bytes": copied_bytes,
            "isr_full": rejoined,
        }
        return Probe(back and copied_bytes > 0 and removed and configured and rejoined, seen)

    def bit(self, during: Probe, after: Probe) -> bool:
        """Both probes must succeed: if every broker had a replica, only the move back has a replica that copies."""
        return during.effective and after.effective

    async def _settled(self, replicas: Sequence[int]) -> bool:
        """Whether all brokers report exactly these replicas, every one of them in sync."""
        wanted = tuple(replicas)
        return await self.agree(
            self.cluster.topic,
            self._partition,
            lambda seen: seen.replicas == wanted and set(seen.isr) == set(wanted) and seen.leader in wanted,
        )

    async def _is_removed(self, broker_id: int) -> bool:
        """Whether this broker neither reports the partition anymore nor has anything of it on its disk."""

        async def nothing() -> bool:
            told = await self.orders.held_on(broker_id, self.cluster.topic)
            return told is not None and self._partition not in told and not await self._left(broker_id)

        return await self.wait(nothing)

    async def _left(self, broker_id: int) -> list[str]:
        """The partition's directories on this broker's disk, including those that wait for their removal."""
        on_disk = await self.cluster.machine(broker_id).directories(self._directory)
        return [name for name in on_disk if name == self._directory or name.startswith(f"{self._directory}.")]

    async def _copied(self, broker_id: int) -> int:
        """The bytes that this broker has of the partition; 0 if that is less than ``_COPIED`` of the leader's bytes."""
        held = await self.held(self.cluster.topic, self._partition)
        mine, most = held.get(broker_id, 0), max(held.values(), default=0)
        return mine if mine > 0 and mine >= _COPIED * most else 0


def _moved(replicas: Sequence[int], outgoing: int, incoming: int | None) -> tuple[int, ...]:
    """The replicas with ``incoming`` in place of ``outgoing``, or without ``outgoing`` if there is no new one."""
    changed = [incoming if each == outgoing else each for each in replicas]
    return tuple(each for each in changed if each is not None)
