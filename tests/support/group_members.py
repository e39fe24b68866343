"""Members of consumer groups: real clients that subscribe, behind one small face, and waiting for what they do.

Owns how confluent-kafka (librdkafka), kafka-python and our own consumer are told to do a thing. Does not own what they
have to see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import confluent_kafka

from cluster.client import Consumer
from cluster.client.consumer.group.rebalance_listener import RebalanceListener
from tests.support.kafka_clients import kafka, wait_for


class Member(Protocol):
    """One consumer of a group, subscribed to one topic. It commits only when told to."""

    def poll(self) -> None:
        """Take part in the group for a moment; keep what was read."""

    def assigned(self) -> set[int]: ...

    def read(self) -> dict[int, list[int]]:
        """Partition -> the offsets that came, in their order."""

    def commit(self) -> None:
        """What was read, and wait for it."""

    def leave(self) -> None: ...


class ConfluentMember:
    """librdkafka."""

    def __init__(self, bootstrap: str, group_id: str, topic: str, **settings: Any) -> None:
        given = {"bootstrap.servers": bootstrap, "group.id": group_id, "log_level": 2, **settings}
        base = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "heartbeat.interval.ms": 200}
        self._consumer = confluent_kafka.Consumer({**base, **given})
        self._consumer.subscribe([topic])
        self._read: dict[int, list[int]] = {}

    def poll(self) -> None:
        for message in self._consumer.consume(100, 0.05):
            assert message.error() is None, message.error()
            self._read.setdefault(message.partition(), []).append(message.offset())

    def assigned(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def read(self) -> dict[int, list[int]]:
        return self._read

    def commit(self) -> None:
        assert all(each.error is None for each in self._consumer.commit(asynchronous=False))

    def leave(self) -> None:
        self._consumer.close()


class KafkaPythonMember:
    """kafka-python."""

    def __init__(self, bootstrap: str, group_id: str, topic: str, **settings: Any) -> None:
        given = {"bootstrap_servers": bootstrap.split(","), "group_id": group_id}
        given |= {name.replace(".", "_"): value for name, value in settings.items()}
        base = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 200}
        self._consumer = kafka.KafkaConsumer(topic, **{**base, **given})
        self._read: dict[int, list[int]] = {}

    def poll(self) -> None:
        for place, records in self._consumer.poll(50).items():
            self._read.setdefault(place.partition, []).extend(record.offset for record in records)

    def assigned(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def read(self) -> dict[int, list[int]]:
        return self._read

    def commit(self) -> None:
        self._consumer.commit()

    def leave(self) -> None:
        self._consumer.close(autocommit=False)


class NativeMember(RebalanceListener):
    """Our own. ``told`` is what its listener heard, in order; the other clients' listeners are theirs to test."""

    def __init__(self, bootstrap: str, group_id: str, topic: str, **settings: Any) -> None:
        given = {"bootstrap.servers": bootstrap, "group.id": group_id, **settings}
        base = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "heartbeat.interval.ms": 200}
        self.consumer = Consumer({**base, **given})
        self.told: list[tuple[str, set[int]]] = []
        self._read: dict[int, list[int]] = {}
        self.consumer.subscribe([topic], self)

    def on_partitions_revoked(self, partitions: list[tuple[str, int]]) -> None:
        self.told.append(("revoked", {number for _, number in partitions}))

    def on_partitions_assigned(self, partitions: list[tuple[str, int]]) -> None:
        self.told.append(("assigned", {number for _, number in partitions}))

    def on_partitions_lost(self, partitions: list[tuple[str, int]]) -> None:
        self.told.append(("lost", {number for _, number in partitions}))

    def poll(self) -> None:
        for record in self.consumer.poll(0.05):
            self._read.setdefault(record.partition, []).append(record.offset)

    def assigned(self) -> set[int]:
        return {number for _, number in self.consumer.assignment()}

    def read(self) -> dict[int, list[int]]:
        return self._read

    def commit(self) -> None:
        self.consumer.commit_sync()

    def leave(self) -> None:
        self.consumer.close()


CLIENTS: Mapping[str, Callable[..., Member]] = {
    "confluent": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "native": NativeMember,
}


class Group:
    """One group that consumes one topic, and its members."""

    def __init__(self, bootstrap: str, group_id: str, topic: str) -> None:
        self.group_id = group_id
        self._bootstrap = bootstrap
        self._topic = topic
        self._members: list[Member] = []

    def join(self, name: str, **settings: Any) -> Member:
        """A new member, by the name of its client."""
        member = CLIENTS[name](self._bootstrap, self.group_id, self._topic, **settings)
        self._members.append(member)
        return member

    def close(self) -> None:
        for member in self._members:
            member.leave()


def polling(members: list[Member], condition: Callable[[], Any], what: str) -> None:
    """Have all members take part until ``condition`` holds."""

    def holds() -> bool:
        for member in members:
            member.poll()
        return bool(condition())

    wait_for(holds, what)


def have_shared(members: list[Member], partitions: int) -> bool:
    """Whether each has some, no partition has two, and none is left over."""
    shares = [member.assigned() for member in members]
    return all(shares) and sum(map(len, shares)) == partitions == len(set().union(*shares))


def have_read(members: list[Member], count: int) -> bool:
    """Whether that many records came."""
    return sum(len(offsets) for member in members for offsets in member.read().values()) >= count
