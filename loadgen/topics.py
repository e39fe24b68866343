"""Finds, creates and examines the topic of a standalone load. Every function blocks.

In a run of the conductor, the topic exists before the load starts, and nothing here is called. Does not write to the
topic.
"""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from cluster.seams.clock import SystemClock
from cluster.seams.units import ns_of_seconds
from loadgen.clients.confluent import describe_exception
from loadgen.clients.librdkafka_attempts import client_logger
from loadgen.limits import LargestRecord, advice, known_sizes, topic_limits, unless_compressed
from loadgen.settings import LoadSettings, SettingsError

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0
#: The topic's settings on which a verdict depends.
JUDGED_BY = ("cleanup.policy", "min.insync.replicas", "unclean.leader.election.enable")
#: The time limit for optional information.
QUESTION_TIMEOUT_S = 3.0
AGAIN_S = 0.2
#: The queries for the beginning and the end of a log.
_ENDS = (OffsetSpec.earliest(), OffsetSpec.latest())


def ensure_topic(bootstrap: str, settings: LoadSettings) -> LoadSettings:
    """The settings with the topic's real number of partitions; if it is absent, it is created where they say so.

    Raises ``SettingsError`` that says what is missing: the cluster, the topic, or the right to make it.
    """
    admin = _admin(bootstrap)
    if (partitions := _partitions(admin, bootstrap, settings.topic)) is None:
        if not settings.create_topic:
            raise SettingsError(
                f"topic {settings.topic} is absent, and the settings do not create it; create it yourself, or give the "
                'settings "create_topic": true'
            )
        if _create(admin, settings):
            return settings
        # another worker of the same load has created it meanwhile
        partitions = _partitions(admin, bootstrap, settings.topic) or settings.partitions
    if partitions != settings.partitions:
        logger.info("topic %s has %d partitions; all of them are used", settings.topic, partitions)
    return settings.with_changes({"partitions": partitions})


def _partitions(admin: AdminClient, bootstrap: str, topic: str) -> int | None:
    """How many partitions a topic has; None if it is absent. Raises ``SettingsError``."""
    try:
        found = admin.list_topics(timeout=TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        raise SettingsError(f"no Kafka cluster answers at {bootstrap} ({describe_exception(error)})") from error
    return None if found is None or found.error is not None else len(found.partitions) or None


def _create(admin: AdminClient, settings: LoadSettings) -> bool:
    """Create the topic. False if it exists by now. Raises ``SettingsError``."""
    logger.info("creating topic %s with %d partitions", settings.topic, settings.partitions)
    new = NewTopic(
        settings.topic,
        num_partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        config=settings.topic_config,
    )
    try:
        admin.create_topics([new], operation_timeout=TIMEOUT_S)[settings.topic].result(TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise SettingsError(f"topic {settings.topic} is absent and not created: {describe_exception(error)}") from error
    return True


def too_large_for_topic(bootstrap: str, settings: LoadSettings, source: str) -> str | None:
    """One line if the load draws records that its topic refuses, None if not, or if that cannot be learned.

    ``source`` says how large values are. What compression makes of a record is seen only when it is sent, and a topic
    may be altered while the load runs: this is to warn about, not to refuse.
    """
    largest = LargestRecord.of(settings.sizes, settings.key_choice)
    topic, broker = _described(bootstrap, settings.topic)
    limits = topic_limits(known_sizes(topic), known_sizes(broker), largest)
    warning = advice(source, limits, largest, "the {}")
    return None if warning is None else unless_compressed(warning, settings.producer_config)


class Log(NamedTuple):
    """The first offset of a partition's log, and the offset of the next record."""

    begin: int
    end: int


def positions(bootstrap: str, topic: str, partitions: int) -> dict[int, Log]:
    """All logs of a topic. Raises ``SettingsError`` if the cluster does not tell in time.

    A topic that was just made has no leaders yet.
    """
    admin, clock = _admin(bootstrap), SystemClock()
    deadline_ns = clock.monotonic_ns() + ns_of_seconds(TIMEOUT_S)
    while True:
        try:
            begins, ends = (_offsets(admin, topic, partitions, spec) for spec in _ENDS)
        except (KafkaException, TimeoutError) as error:
            if clock.monotonic_ns() >= deadline_ns:
                why = describe_exception(error)
                raise SettingsError(f"the log ends of topic {topic} are unknown: {why}") from error
            threading.Event().wait(AGAIN_S)
        else:
            return {number: Log(begins[number], ends[number]) for number in range(partitions)}


def _offsets(admin: AdminClient, topic: str, partitions: int, spec: OffsetSpec) -> dict[int, int]:
    asked = admin.list_offsets(
        {TopicPartition(topic, number): spec for number in range(partitions)}, request_timeout=QUESTION_TIMEOUT_S
    )
    return {place.partition: told.result(TIMEOUT_S).offset for place, told in asked.items()}


def topic_config(bootstrap: str, topic: str) -> dict[str, str]:
    """The topic's settings on which a verdict depends; empty if the cluster does not answer."""
    told = _described(bootstrap, topic)[0]
    return {name: value for name, value in told.items() if name in JUDGED_BY and value is not None}


def why_not_written(bootstrap: str, topic: str) -> str | None:
    """Why a cluster or a topic acknowledges nothing, in words; None if that does not show."""
    try:
        found = _admin(bootstrap).list_topics(timeout=QUESTION_TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        return f"no broker is reachable at {bootstrap} ({describe_exception(error)})"
    if found is None or found.error is not None or not found.partitions:
        return f"topic {topic} is missing"
    leaderless = sorted(number for number, partition in found.partitions.items() if partition.leader < 0)
    return f"partitions {', '.join(map(str, leaderless))} of topic {topic} have no leader" if leaderless else None


def _described(bootstrap: str, topic: str) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The settings of a topic and of one broker; empty if the cluster does not answer in time."""
    admin = _admin(bootstrap)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic)]
    try:
        # any broker will do, because all should have the same limits
        brokers = sorted(admin.list_topics(timeout=QUESTION_TIMEOUT_S).brokers)
        resources += [ConfigResource(ConfigResource.Type.BROKER, str(broker)) for broker in brokers[:1]]
        asked = admin.describe_configs(resources, request_timeout=QUESTION_TIMEOUT_S)
    except KafkaException as error:
        logger.info("the limits of topic %s are unknown: %s", topic, describe_exception(error))
        return {}, {}
    told: list[dict[str, str | None]] = []
    for resource in resources:
        try:
            entries = asked[resource].result(QUESTION_TIMEOUT_S)
            told.append({name: entry.value for name, entry in entries.items()})
        except (KafkaException, TimeoutError) as error:
            logger.info("the limits of %s are unknown: %s", resource.name, describe_exception(error))
            told.append({})
    return told[0], told[1] if len(told) > 1 else {}


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient(
        {"bootstrap.servers": bootstrap, "client.id": "gapless-load", "socket.timeout.ms": 5000}, logger=client_logger
    )
