"""Failovers on a real cluster that is asked for what is impossible, or for very much, by its administrators.

    .venv/bin/python -m tests.hostile.failovers

Three brokers and a ZooKeeper, each a process. The controller gets the requests; a second later the controller, or the
leader of a partition that a producer writes to, is killed with kill -9. Each time a leader must be replaced within
``REPLACED_S``, and a record acknowledged by acks=all again, and a topic made, within ``MOST_S``. In the end every
acknowledged record is there. Exit status 1 if not.

Owns the requests, the kills and the times. Does not own the cluster (``tests.integration.local_cluster``), or one
broker and its event loop (``run``).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.config.profiles import CHAOS
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import encode_request, request_class
from tests.hostile.absence import Plain
from tests.integration.local_cluster import LocalCluster, eventually

#: From the kill to the first acknowledgement, and to a topic that is made: a session's end, the end of the lag of a
#: follower that is gone, the retry of a client, and as much again for a machine with two cores.
MOST_S = 2 * (int(CHAOS.broker["zookeeper.session.timeout.ms"]) + int(CHAOS.broker["replica.lag.time.max.ms"])) / 1000
#: From the kill to the new leader's state in ZooKeeper, by the journals: a session's end and a second.
REPLACED_S = int(CHAOS.broker["zookeeper.session.timeout.ms"]) / 1000 + 1
#: From the requests to the kill.
PAUSE_S = 1.0
#: For a broker to come back into every ISR.
RETURN_S = 120.0
TOPIC = "t"
#: Texts of about the most bytes that one may have, and of more than a node of ZooKeeper takes.
LONG_BYTES, TOO_LONG_BYTES = 32_000, 1_500_000
CONTROLLER, LEADER = "controller", "leader"

#: One request: its API, version and fields; and the error it gets, or None if it is not waited for.
Asked = tuple[ApiKey, int, dict[str, Any], ErrorCode | None]


def _creation(name: str, partitions: int, **configs: str) -> Any:
    topic = request_class(ApiKey.CREATE_TOPICS).CreatableTopic
    return topic(
        name=name,
        num_partitions=partitions,
        replication_factor=3,
        assignments=[],
        configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def _create(*topics: Any, error: ErrorCode | None) -> Asked:
    fields = {"topics": [*topics], "timeout_ms": 60_000, "validate_only": False}
    return ApiKey.CREATE_TOPICS, 5, fields, error


def _grow(count: int, error: ErrorCode) -> Asked:
    topic = request_class(ApiKey.CREATE_PARTITIONS).CreatePartitionsTopic(name=TOPIC, count=count, assignments=None)
    fields = {"topics": [topic], "timeout_ms": 5000, "validate_only": False}
    return ApiKey.CREATE_PARTITIONS, 1, fields, error


def _delete(names: list[str], error: ErrorCode | None) -> Asked:
    return ApiKey.DELETE_TOPICS, 3, {"topic_names": names, "timeout_ms": 60_000}, error


def assaults(victim: str) -> dict[str, list[Asked]]:
    """What an administrator may ask for before ``victim`` is killed, by name."""
    many = [f"{victim}-{number}" for number in range(200)]
    return {
        "nothing, to compare with": [],
        "a value of 32 KB of blanks": [
            _create(_creation(f"blanks-{victim}", 1, **{"retention.ms": " " * LONG_BYTES + "5"}), error=ErrorCode.NONE)
        ],
        "a value of 32 KB that is no number": [
            _create(_creation("letters", 1, **{"retention.ms": "x" * LONG_BYTES}), error=ErrorCode.INVALID_CONFIG)
        ],
        # Its connection is closed.
        "a value of 1.5 MB of blanks": [
            _create(_creation(f"long-{victim}", 1, **{"retention.ms": " " * TOO_LONG_BYTES + "5"}), error=None)
        ],
        "a topic of 100,000 partitions": [_create(_creation("large", 100_000), error=ErrorCode.POLICY_VIOLATION)],
        "a topic that grows to 100,000 partitions": [_grow(100_000, ErrorCode.POLICY_VIOLATION)],
        "one new topic, named 20,000 times": [
            _create(*[_creation("twice", 1)] * 20_000, error=ErrorCode.INVALID_REQUEST)
        ],
        "30,000 unknown topics to delete": [
            _delete([f"unknown-{number}" for number in range(30_000)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        ],
        "200 topics being made": [_create(*[_creation(name, 1) for name in many], error=None)],
        "200 topics being deleted": [_delete(many, None)],
    }


@dataclass
class Outcome:
    """Times in seconds from the kill on; -1 if it did not happen."""

    assault: str
    victim: str
    answered_s: float = 0.0
    #: NaN if what was killed led nothing.
    replaced_s: float = math.nan
    acknowledged_s: float = -1.0
    created_s: float = -1.0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        replaced = "" if math.isnan(self.replaced_s) else f"replaced after {self.replaced_s:4.2f} s, "
        found = f"{replaced}acknowledged after {self.acknowledged_s:4.1f} s, a topic made after {self.created_s:4.1f} s"
        return f"{self.victim:<10} {self.assault:<42} answered in {self.answered_s:4.1f} s, {found}"


class Probe:
    """One cluster, its producer, and what was acknowledged to it."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        settings = {"bootstrap.servers": cluster.bootstrap, "log_level": 2}
        self.admin = AdminClient(settings)
        self.acknowledged: list[bytes] = []
        self._count = 0
        self._producer = confluent_kafka.Producer({**settings, **_PRODUCER})
        self._settings = settings

    def create(self, name: str, timeout_s: float) -> bool:
        """Whether there is such a topic afterwards, by a client that knows nothing of a former controller."""
        admin = AdminClient(self._settings)
        (future,) = admin.create_topics([NewTopic(name, 1, 2)], request_timeout=timeout_s).values()
        try:
            future.result(timeout_s)
        except confluent_kafka.KafkaException as error:
            return bool(error.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    def write(self, timeout_s: float) -> bool:
        """One record more; whether it was acknowledged in time."""
        self._count += 1
        value = b"%d" % self._count
        self._producer.produce(TOPIC, value, partition=0, on_delivery=self._delivered)
        self._producer.flush(timeout_s)
        return self.acknowledged[-1:] == [value]

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.append(message.value())

    def place(self, what: str) -> int:
        """The broker that is controller, or leads."""
        metadata = self.admin.list_topics(TOPIC, timeout=10)
        return int(metadata.controller_id if what == CONTROLLER else metadata.topics[TOPIC].partitions[0].leader)

    def replaced_s(self, broker_id: int, killed_wall_ms: float) -> float:
        """How long after the kill another broker was made leader, as a controller noted; -1 if none was."""
        times = [
            event["wall_ms"]
            for each in self.cluster.broker_ids
            for line in Path(self.cluster.node(each), "control.jsonl").read_text().splitlines()
            if (event := json.loads(line))["event"] == "partition-changed" and event["topic"] == TOPIC
            if event["leader"] not in (-1, broker_id) and event["wall_ms"] >= killed_wall_ms
        ]
        return (min(times) - killed_wall_ms) / 1000 if times else -1.0

    def is_whole(self) -> bool:
        """Whether every partition has all its replicas in sync."""
        metadata = self.admin.list_topics(timeout=10)
        partitions = [partition for topic in metadata.topics.values() for partition in topic.partitions.values()]
        return len(metadata.brokers) == 3 and all(len(each.isrs) == len(each.replicas) for each in partitions)

    def read(self) -> list[bytes]:
        """The values of the partition, as far as it is committed."""
        consumer = confluent_kafka.Consumer({**self._settings, "group.id": "nobody", "enable.auto.commit": False})
        place = confluent_kafka.TopicPartition(TOPIC, 0, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([place])
        found: list[bytes] = []

        def is_all() -> bool:
            messages = [message for message in consumer.consume(1000, 0.2) if message.error() is None]
            found.extend(message.value() for message in messages)
            return len(found) >= end

        try:
            eventually(is_all, 30, f"{end} records")
        finally:
            consumer.close()
        return found


_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 300_000,
    "retry.backoff.ms": 50,
    "socket.timeout.ms": 3000,
    "request.timeout.ms": 2000,
    "topic.metadata.refresh.interval.ms": 500,
}


@contextmanager
def asking(probe: Probe, asked: list[Asked], outcome: Outcome) -> Iterator[None]:
    """Send to the controller; what is not waited for is on its way within the block."""
    port = probe.cluster.ports[probe.place(CONTROLLER)]["CLIENTS"]
    begun = time.monotonic()
    with ExitStack() as stack:
        for api_key, version, fields, error in asked:
            plain = stack.enter_context(Plain(port))
            if error is None:
                plain.put(encode_request(request_class(api_key)(**fields), version, 1, "hostile"))
                continue
            codes = _codes(plain.send(api_key, version, **fields))
            if codes != {error}:
                outcome.wrong.append(f"{outcome.assault}: answered {codes}, not {error!r}")
        outcome.answered_s = time.monotonic() - begun
        yield


def _codes(answer: Any) -> set[int]:
    parts = next(
        value for name in ("topics", "results", "responses") if (value := getattr(answer, name, None)) is not None
    )
    return {part.error_code for part in parts}


def within(since_s: float, condition: Callable[[], Any]) -> float:
    """Seconds from ``since_s`` until it first holds without an error; -1 if that takes longer than ``MOST_S``."""
    while (passed_s := time.monotonic() - since_s) < MOST_S:
        try:
            if condition():
                return time.monotonic() - since_s
        except (confluent_kafka.KafkaException, TimeoutError):
            time.sleep(0.05)
    return -1.0 if passed_s >= MOST_S else passed_s


def fail_over(probe: Probe, number: int, assault: str, asked: list[Asked], victim: str) -> Outcome:
    """Ask, kill, and wait for what must come back. The cluster is whole before and after."""
    outcome = Outcome(assault, victim)
    if not probe.write(MOST_S):
        outcome.wrong.append(f"{assault}: nothing was acknowledged before the kill")
    with asking(probe, asked, outcome):
        time.sleep(PAUSE_S)
        broker_id, leader = probe.place(victim), probe.place(LEADER)
        killed_wall_ms = time.time() * 1000
        probe.cluster.kill(broker_id)
        killed_s = time.monotonic()
        outcome.acknowledged_s = within(killed_s, lambda: probe.write(0.5))
        outcome.created_s = within(killed_s, lambda: probe.create(f"after-{number}", 2.0))
    if broker_id == leader:
        outcome.replaced_s = probe.replaced_s(broker_id, killed_wall_ms)
        if not 0 <= outcome.replaced_s <= REPLACED_S:
            outcome.wrong.append(f"{assault}, {victim} killed: replaced after {outcome.replaced_s:.2f} s")
    for what, took_s in (("acknowledged", outcome.acknowledged_s), ("created", outcome.created_s)):
        if took_s < 0:
            outcome.wrong.append(f"{assault}, {victim} killed: nothing was {what} within {MOST_S:.0f} s")
    probe.cluster.restart(broker_id)
    eventually(probe.is_whole, RETURN_S, "every replica in sync again")
    return outcome


def probe_all(directory: str, names: list[str], told: Callable[[str], object]) -> list[str]:
    """Each assault with each victim, on one cluster; what was wrong."""
    wrong: list[str] = []
    with LocalCluster(directory) as cluster:
        probe = Probe(cluster)
        probe.admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
        for number, name in enumerate(names):
            for victim in (CONTROLLER, LEADER):
                outcome = fail_over(probe, 2 * number + (victim == LEADER), name, assaults(victim)[name], victim)
                told(outcome.line())
                wrong += outcome.wrong
                if outcome.wrong:
                    return wrong
        found = probe.read()
        lost = [value for value in probe.acknowledged if value not in set(found)]
        if lost or len(found) != len(set(found)):
            wrong.append(f"{len(lost)} acknowledged records are lost, {len(found) - len(set(found))} are there twice")
        told(f"{len(probe.acknowledged)} acknowledged, {len(found)} found")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.hostile.failovers", description="Failovers under admin requests.")
    parser.add_argument("--only", choices=list(assaults(CONTROLLER)), help="one of the assaults")
    only = parser.parse_args().only

    def tell(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    with TemporaryDirectory(prefix="gapless-failovers-") as directory:
        wrong = probe_all(directory, [only] if only else list(assaults(CONTROLLER)), tell)
    tell(
        "".join(f"WRONG: {each}\n" for each in wrong)
        + f"RESULT failovers wrong={len(wrong)}, bounds {REPLACED_S:.0f} s and {MOST_S:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
