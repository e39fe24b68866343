"""What a run declares before its load begins, and what it looks at again in the end. Owns no phase.

The verifier accounts for everything that is declared (``verifier.completeness``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chaos.conductor.observed_cluster import ObservedCluster
from chaos.conductor.observer import Observer
from chaos.faults.base import until
from cluster.client import NewTopic
from cluster.client.errors import AdminError
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from verifier.evidence.declared import DeclaredEvidence, DeclaredProcess

if TYPE_CHECKING:
    from cluster.client.async_admin import AsyncAdmin

logger = logging.getLogger(__name__)

TOPIC_IDS_MS = 5_000


def declared_evidence(
    processes: list[DeclaredProcess],
    brokers: Sequence[int],
    topic: str,
    view: ObservedCluster,
    planned_faults: int,
    output_replicas: Mapping[str, list[int]],
) -> DeclaredEvidence:
    """The processes, the brokers, and the replicas as the cluster has assigned them. Pure."""
    replicas = {f"{topic}-{index}": sorted(seen.replicas) for index, seen in view.partitions.items()}
    replicas |= output_replicas
    return DeclaredEvidence(processes, list(brokers), replicas, planned_faults)


async def create_topics(
    observer: Observer, topic: NewTopic, output: str | None, clock: Clock, timeout_ms: int
) -> tuple[str, dict[str, list[int]]]:
    """Create the topic of a run, and one like it for its output; the id of the first, the replicas of the second.

    Raises as ``create_topic`` does, and ``TimeoutError``.
    """
    admin = observer.admin(timeout_ms)
    try:
        await create_topic(admin, topic, clock, timeout_ms)
        topic_id = (await admin.describe([topic.name]))[topic.name].topic_id
        replicas: dict[str, list[int]] = {}
        if output is not None:
            await create_topic(admin, replace(topic, name=output), clock, timeout_ms)
            made = (await admin.describe([output]))[output]
            replicas = {f"{output}-{number}": sorted(each.replicas) for number, each in made.partitions.items()}
    finally:
        await admin.close()
    return "" if topic_id is None else str(topic_id), replicas


async def create_topic(admin: AsyncAdmin, topic: NewTopic, clock: Clock, timeout_ms: int) -> None:
    """Create it. A broker that has just started may not be counted by the controller yet: then it is waited for.

    Raises ``AdminError`` for any other refusal, and for that one when the time is over.
    """
    refusals: list[AdminError] = []

    async def created() -> bool:
        try:
            await admin.create_topics([topic])
        except AdminError as error:
            if error.error_code != ErrorCode.INVALID_REPLICATION_FACTOR:
                raise
            refusals.append(error)
            return False
        return True

    if not await until(created, clock=clock, timeout_ms=timeout_ms):
        raise refusals[-1]


async def topic_ids(observer: Observer, topic: str) -> dict[str, str]:
    """The topic's id as the cluster tells it now; nothing if it does not answer."""
    admin = observer.admin(TOPIC_IDS_MS)
    try:
        described = await admin.describe([topic])
    except (OSError, TimeoutError, AdminError) as error:
        logger.warning("the topic id at the end is not known: %r", error)
        return {}
    finally:
        await admin.close()
    return {name: "" if each.topic_id is None else str(each.topic_id) for name, each in described.items()}
