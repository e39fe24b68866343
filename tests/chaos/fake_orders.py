"""The admin APIs of a cluster that exists only as numbers: what is ordered happens at once, on every broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from chaos.faults.admin_orders import RoundTrip, SeenReplicas
from tests.chaos.fake_machine import FakeMachine

#: What holds for a topic without settings of its own.
DEFAULTS: Mapping[str, str] = {
    "segment.ms": "604800000",
    "max.message.bytes": "1048588",
    "file.delete.delay.ms": "60000",
}


@dataclass(frozen=True)
class FakeTopic:
    """``records`` by partition; ``overrides`` are its own settings."""

    partitions: Mapping[int, SeenReplicas]
    overrides: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[int, int] = field(default_factory=dict)


class FakeOrders:
    """``deaf`` makes orders do nothing. ``empty`` makes new replicas copy nothing; ``stubborn`` keeps deleted data."""

    def __init__(
        self, topic: str, partitions: int, brokers: Sequence[int], machines: Mapping[int, FakeMachine]
    ) -> None:
        self.deaf = self.empty = self.stubborn = False
        self.machines = machines
        self.brokers = tuple(brokers)
        self.moves: list[tuple[int, ...]] = []
        self.preferred_elections = self.unclean_elections = 0
        seen = SeenReplicas(self.brokers[0], 7, self.brokers[:3], self.brokers[:3])
        self.topics: dict[str, FakeTopic] = {topic: FakeTopic(dict.fromkeys(range(partitions), seen))}
        self._place(topic)

    def _place(self, topic: str) -> None:
        """Directories as the replicas say."""
        known = self.topics.get(topic)
        for broker_id, machine in self.machines.items():
            kept = {name for name in machine.logs if name.rpartition("-")[0] != topic or self.stubborn}
            has = () if known is None else known.partitions.items()
            machine.logs = kept | {f"{topic}-{number}" for number, seen in has if broker_id in seen.replicas}

    def _change(self, topic: str, partition: int, seen: SeenReplicas) -> None:
        known = self.topics[topic]
        self.topics[topic] = replace(known, partitions={**known.partitions, partition: seen})
        self._place(topic)

    async def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        if not self.deaf:
            seen = SeenReplicas(self.brokers[0], 0, self.brokers[:replicas], self.brokers[:replicas])
            self.topics[topic] = FakeTopic(dict.fromkeys(range(partitions), seen), dict(config))
            self._place(topic)

    async def delete_topic(self, topic: str) -> None:
        if not self.deaf:
            self.topics.pop(topic, None)
            self._place(topic)

    async def add_partitions(self, topic: str, total: int) -> None:
        if not self.deaf:
            known = self.topics[topic]
            self.topics[topic] = replace(known, partitions=dict.fromkeys(range(total), known.partitions[0]))
            self._place(topic)

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        self.moves.append(tuple(replicas))
        if not self.deaf:
            seen = self.topics[topic].partitions[partition]
            leader = seen.leader if seen.leader in replicas else replicas[0]
            self._change(
                topic, partition, SeenReplicas(leader, seen.leader_epoch + 1, tuple(replicas), tuple(replicas))
            )

    async def elect_unclean(self, topic: str, partition: int) -> str:
        self.unclean_elections += not self.deaf
        return "REQUEST_TIMED_OUT" if self.deaf else "NONE"

    async def elect(self, topic: str, partition: int) -> str:
        seen = self.topics[topic].partitions[partition]
        if not self.deaf and seen.leader != seen.replicas[0]:
            self.preferred_elections += 1
            self._change(topic, partition, seen._replace(leader=seen.replicas[0], leader_epoch=seen.leader_epoch + 1))
        return "NONE"

    async def set_config(self, topic: str, values: Mapping[str, str | None]) -> None:
        if not self.deaf:
            for machine in self.machines.values():
                machine.closed += 3 * (values.get("segment.ms") is not None)
            known = self.topics[topic]
            merged = {**known.overrides, **values}
            self.topics[topic] = replace(known, overrides={k: v for k, v in merged.items() if v is not None})

    async def config_on(self, broker_id: int, topic: str) -> Mapping[str, str] | None:
        known = self.topics.get(topic)
        return DEFAULTS if known is None else {**DEFAULTS, **known.overrides}

    async def overrides(self, topic: str) -> Mapping[str, str]:
        known = self.topics.get(topic)
        return {} if known is None else known.overrides

    async def topic_on(self, broker_id: int, topic: str) -> Mapping[int, SeenReplicas] | None:
        known = self.topics.get(topic)
        return {} if known is None else known.partitions

    async def held_on(self, broker_id: int, topic: str) -> Mapping[int, int] | None:
        known = self.topics.get(topic)
        if known is None:
            return {}
        size = 1 if self.empty and broker_id != self.brokers[0] else 100
        return {number: size for number, seen in known.partitions.items() if broker_id in seen.replicas}

    async def round_trip(self, topic: str, partition: int, size_bytes: int = 100) -> RoundTrip:
        known = self.topics.get(topic)
        if known is None or partition not in known.partitions:
            return RoundTrip(-1, False, "UNKNOWN_TOPIC_OR_PARTITION")
        holds = {**DEFAULTS, **known.overrides}
        if size_bytes > int(holds["max.message.bytes"]):
            return RoundTrip(-1, False, "MESSAGE_TOO_LARGE")
        offset = known.records.get(partition, 0)
        self.topics[topic] = replace(known, records={**known.records, partition: offset + 1})
        return RoundTrip(offset, True, "")
