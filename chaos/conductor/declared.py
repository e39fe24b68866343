"""What a run declares before its load begins, and what it looks at again in the end. Owns no phase.

The verifier accounts for everything that is declared (``verifier.completeness``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from chaos.conductor.observer import Observer
from chaos.conductor.view import ClusterView
from cluster.client.errors import AdminError
from verifier.evidence.declared import DeclaredEvidence, DeclaredProcess

log = logging.getLogger(__name__)

TOPIC_IDS_MS = 5_000


def declared_evidence(
    processes: list[DeclaredProcess], brokers: Sequence[int], topic: str, view: ClusterView, planned_faults: int
) -> DeclaredEvidence:
    """The processes, the brokers, and the replicas as the cluster has assigned them. Pure."""
    replicas = {f"{topic}-{index}": sorted(seen.replicas) for index, seen in view.partitions.items()}
    return DeclaredEvidence(processes, list(brokers), replicas, planned_faults)


async def topic_ids(observer: Observer, topic: str) -> dict[str, str]:
    """The topic's id as the cluster tells it now; nothing if it does not answer."""
    admin = observer.admin(TOPIC_IDS_MS)
    try:
        described = await admin.describe([topic])
    except (OSError, TimeoutError, AdminError) as error:
        log.warning("the topic id at the end is not known: %r", error)
        return {}
    finally:
        await admin.close()
    return {name: "" if each.topic_id is None else str(each.topic_id) for name, each in described.items()}
