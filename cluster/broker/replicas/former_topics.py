"""Logs whose topics are gone, and whose names other topics have now (KAFKA-14616).

A reassignment takes a replica from a broker that is away, the topic is deleted, and one of the same name is created:
the deletion asked only the brokers that had a replica then, so the log is still here. Owns which logs these are. Does
not own their deletion (``roles``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from cluster.broker.replicas.assignments import ReplicaAssignment, ReplicaStop
from cluster.log.manager import LogManager
from cluster.replication.leader_epochs import EPOCH_DURING_DELETE

logger = logging.getLogger(__name__)


def is_former(asked: ReplicaAssignment, logs: LogManager, broker_id: int) -> bool:
    """Whether the log in the place of this broker's replica is that of a former topic, and is not to be kept.

    No acknowledged record can depend on it if the replica is new here, or is not in the ISR. A member of the ISR
    without its log is another matter: its records may be in a directory that someone has moved. It stays offline until
    someone looks (INCONSISTENT_TOPIC_ID).
    """
    log = logs.get(asked.topic, asked.partition)
    if log is None or log.topic_id in (None, asked.topic_id) or broker_id not in asked.role.replicas:
        return False
    return asked.is_new or broker_id not in asked.role.isr


def stops_of_former(assignments: Iterable[ReplicaAssignment], logs: LogManager, broker_id: int) -> list[ReplicaStop]:
    """What deletes these logs."""
    former = [asked for asked in assignments if is_former(asked, logs, broker_id)]
    for asked in former:
        logger.warning(
            "%s-%d has topic id %s now: deleting the log of a former topic",
            asked.topic,
            asked.partition,
            asked.topic_id,
        )
    return [ReplicaStop(asked.topic, asked.partition, EPOCH_DURING_DELETE, delete=True) for asked in former]
