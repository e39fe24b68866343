"""The topic of a load that was started by hand: found, or made. Owns that one step; it blocks.

In a run of the conductor the topic exists before the load starts, and nothing here is called.
"""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from loadgen.clients.confluent import client_logger, describe_exception
from loadgen.settings import LoadSettings, SettingsError

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0


def ensure_topic(bootstrap: str, settings: LoadSettings) -> LoadSettings:
    """The settings with the topic's real number of partitions; the topic is created if it is absent.

    Raises ``SettingsError`` that says what is missing: the cluster, the topic, or the right to make it.
    """
    admin = AdminClient(
        {"bootstrap.servers": bootstrap, "client.id": "gapless-load", "socket.timeout.ms": 5000}, logger=client_logger
    )
    try:
        topics = admin.list_topics(timeout=TIMEOUT_S).topics
    except KafkaException as error:
        raise SettingsError(f"no Kafka cluster answers at {bootstrap} ({describe_exception(error)})") from error
    found = topics.get(settings.topic)
    if found is not None and found.error is None and found.partitions:
        partitions = len(found.partitions)
        if partitions != settings.partitions:
            logger.info("topic %s has %d partitions; all of them are used", settings.topic, partitions)
        return settings.with_changes({"partitions": partitions})
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
        raise SettingsError(f"topic {settings.topic} is absent and not created: {describe_exception(error)}") from error
    return settings
