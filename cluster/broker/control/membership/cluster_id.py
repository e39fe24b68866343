"""What a cluster has in ZooKeeper before it has any broker: the persistent paths, and its id.

Owns their creation by whichever broker comes first. Does not own what is written under those paths.
"""

from __future__ import annotations

import base64

from cluster.broker.control.membership.session import Session
from cluster.metadata.paths import CLUSTER_ID, FEATURE, PERSISTENT_PATHS
from cluster.metadata.store import NodeExistsError, NoNodeError
from cluster.metadata.znodes import NO_FEATURES, decode_cluster_id, encode_cluster_id
from cluster.seams.randomness import Random


async def prepare_paths(session: Session) -> None:
    """Create what every cluster has, if it is not there."""
    for path in PERSISTENT_PATHS:
        await _create_if_absent(session, path, b"")
    await _create_if_absent(session, FEATURE, NO_FEATURES)


async def cluster_id(session: Session, random: Random) -> str:
    """The cluster's id: read, or drawn and written by the first broker."""
    drawn = base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
    await _create_if_absent(session, CLUSTER_ID, encode_cluster_id(drawn))
    data, _ = await session.read(lambda: session.store.get(CLUSTER_ID))
    return decode_cluster_id(data)


async def _create_if_absent(session: Session, path: str, data: bytes) -> None:
    async def create() -> None:
        try:
            await session.store.create(path, data)
        except NodeExistsError:
            return
        except NoNodeError:
            await session.store.create(path, data, make_parents=True)

    await session.read(create)
