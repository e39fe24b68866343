"""Where Kafka's znodes stand: their paths (Kafka's ZkData). Pure.

Does not own what is in them: that is ``znodes``.
"""

from __future__ import annotations

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
DELETE_TOPICS = "/admin/delete_topics"
TOPIC_CONFIGS = "/config/topics"
CONFIG_CHANGES = "/config/changes"
#: ZooKeeper appends the ten digits of a sequence number.
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
CLUSTER_ID = "/cluster/id"
FEATURE = "/feature"

#: Created by every broker at start if they are absent, parents first.
PERSISTENT_PATHS = (
    "/consumers",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/brokers/seqid",
    "/config",
    TOPIC_CONFIGS,
    "/config/brokers",
    "/config/clients",
    "/config/users",
    "/config/ips",
    CONFIG_CHANGES,
    "/admin",
    DELETE_TOPICS,
    "/isr_change_notification",
    "/log_dir_event_notification",
    PRODUCER_ID_BLOCK,
    "/cluster",
)


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(kind: str, name: str) -> str:
    """``kind`` is ``topics`` or ``brokers``."""
    return f"/config/{kind}/{name}"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"
