"""The named profiles: ``chaos``, with short timeouts, and ``kafka``, with Kafka's own (docs/configuration.md).

Owns which values they set; everything else is the tables' default. A profile is weak: what a user asks for wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.config.errors import ConfigError
from cluster.config.keys import suggestion


@dataclass(frozen=True)
class Profile:
    """Values for each kind of configuration. Producers and consumers have one set per client."""

    name: str
    doc: str
    broker: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    consumer: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def producer_base(self, client: str) -> Mapping[str, str]:
        """For ``cluster.config.producer.validate(..., base=...)``; ``client`` is native or confluent."""
        return self.producer.get(client, {})

    def consumer_base(self, client: str) -> Mapping[str, str]:
        """For ``cluster.config.consumer.validate(..., base=...)``."""
        return self.consumer.get(client, {})


#: What makes librdkafka behave as a Java user expects: idempotent, acks=all.
_CONFLUENT_AS_KAFKA = {"acks": "all", "enable.idempotence": "true", "max.in.flight.requests.per.connection": "5"}

#: And its consumers too: librdkafka reads committed records alone unless told otherwise.
_CONFLUENT_READS_AS_KAFKA = {"isolation.level": "read_uncommitted"}

_CLIENT_TIMES = {
    "request.timeout.ms": "3000",
    "retry.backoff.ms": "20",
    "retry.backoff.max.ms": "200",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "200",
}

#: librdkafka asks who leads when a connection breaks, and then not until this interval has passed: its default of five
#: minutes leaves it to a scan of its own, once a second, long after the election.
_CONFLUENT_TIMES = {
    "socket.timeout.ms": "3000",
    "socket.connection.setup.timeout.ms": "3000",
    "retry.backoff.ms": "20",
    "retry.backoff.max.ms": "200",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "200",
    "topic.metadata.refresh.fast.interval.ms": "50",
    "topic.metadata.refresh.interval.ms": "200",
}

#: Longer than the longest fault of a schedule, the election after it and the catch-up after that.
_DELIVERY_TIMEOUT_MS = "120000"

CHAOS = Profile(
    name="chaos",
    doc="short timeouts, so that a one-minute run does not spend its time waiting for them",
    broker={
        "zookeeper.session.timeout.ms": "2000",
        "zookeeper.connection.timeout.ms": "10000",
        "replica.lag.time.max.ms": "4000",
        "replica.socket.timeout.ms": "3000",
        "controller.socket.timeout.ms": "3000",
        "request.timeout.ms": "3000",
        "replica.fetch.backoff.ms": "100",
        "controlled.shutdown.retry.backoff.ms": "500",
        "auto.create.topics.enable": "false",
        # librdkafka asks for the coordinator also where it assigns: fifty more partitions are not what is tested.
        "offsets.topic.num.partitions": "6",
        "transaction.state.log.num.partitions": "6",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "500",
        # No timeout: fewer waits for room than with Kafka's 102,400 (docs/performance.md).
        "socket.send.buffer.bytes": "262144",
        # Experiments want many rolls.
        "gapless.min.segment.bytes": "14",
        "gapless.min.segment.ms": "0",
    },
    # Retention would remove evidence; workloads that test it set it.
    topic={"retention.ms": "-1"},
    producer={
        "native": {**_CLIENT_TIMES, "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS},
        "confluent": {
            **_CONFLUENT_AS_KAFKA,
            **_CONFLUENT_TIMES,
            "request.timeout.ms": "3000",
            "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
        },
    },
    consumer={
        "native": _CLIENT_TIMES,
        # fetch.queue.backoff.ms: the default of a second makes readers stop and go.
        "confluent": {
            **_CONFLUENT_READS_AS_KAFKA,
            **_CONFLUENT_TIMES,
            "fetch.queue.backoff.ms": "20",
            "fetch.error.backoff.ms": "100",
        },
    },
)

KAFKA = Profile(
    name="kafka",
    doc="Kafka's own defaults",
    producer={"confluent": _CONFLUENT_AS_KAFKA},
    consumer={"confluent": _CONFLUENT_READS_AS_KAFKA},
)

PROFILES = {profile.name: profile for profile in (CHAOS, KAFKA)}


def find(name: str) -> Profile:
    """The profile of that name. Raises ConfigError with the nearest name."""
    if name not in PROFILES:
        known = ", ".join(PROFILES)
        raise ConfigError(f"unknown profile '{name}'{suggestion(name, PROFILES) or f'; known profiles: {known}'}")
    return PROFILES[name]
