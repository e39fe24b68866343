"""What a run declares before its load begins, and what it looks at again in the end. Owns no phase.

The verifier accounts for everything that is declared (``verifier.completeness``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
    processes: list[DeclaredProcess], brokers: Sequence[int], topic: str, view: ObservedCluster, planned_faults: int
) -> DeclaredEvidence:
    """The processes, the brokers, and the replicas as the cluster has assigned them. Pure."""
    replicas = {f"{topic}-{index}": sorted(seen.replicas) for index, seen in view.partitions.items()}
    return DeclaredEvidence(processes, list(brokers), replicas, planned_faults)


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
