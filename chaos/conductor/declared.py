"""Creates the topics of a run and declares the evidence that the run will leave, before its load begins.

The verifier accounts for everything that is declared (``verifier.completeness``). Also reads the topic ids again at the
end. Does not own the phases in which this happens (``chaos.conductor.conductor``).
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
    """What the run will leave: histories of the processes, logs of the brokers, and the replicas assigned now. Pure.

    ``output_replicas`` are those of the output topic, as ``create_topics`` returns them.
    """
    replicas = {f"{topic}-{index}": sorted(seen.replicas) for index, seen in view.partitions.items()}
    replicas |= output_replicas
    return DeclaredEvidence(processes, list(brokers), replicas, planned_faults)


async def create_topics(
    observer: Observer, topic: NewTopic, output: str | None, clock: Clock, timeout_ms: int
) -> tuple[str, dict[str, list[int]]]:
    """Create the topic of a run, and if ``output`` is given, one like it with that name.

    Returns the id of the first topic ("" if it has none), and the replicas of the second by ``TOPIC-PARTITION``. Raises
    AdminError and ``TimeoutError``.
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
    """Create the topic.

    A controller that does not know all started brokers yet refuses the replication factor; then this tries again for up
    to ``timeout_ms``. Raises AdminError for that refusal after this time, and for any other refusal at once.
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
    """The topic's current id, by its name: "" if it has none, empty if the cluster does not answer."""
    admin = observer.admin(TOPIC_IDS_MS)
    try:
        described = await admin.describe([topic])
    except (OSError, TimeoutError, AdminError) as error:
        logger.warning("the topic id at the end is not known: %r", error)
        return {}
    finally:
        await admin.close()
    return {name: "" if each.topic_id is None else str(each.topic_id) for name, each in described.items()}
