"""Asks ZooKeeper, after all clients are done, which producer ids the cluster allocated. Owns this one request.

If there is no answer, this logs a warning and the run continues; the verdict is then ``unknown``. Judges nothing: the
verifier compares the ids (``unknown-producer-id``).
"""

from __future__ import annotations

import logging

from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.metadata.store import NoNodeError, StoreError
from cluster.metadata.znodes import MalformedZnode, ProducerIdBlockNode

logger = logging.getLogger(__name__)

#: Long, because ZooKeeper may have just been restarted, and without an answer the run cannot be judged.
ASK_MS = 30_000


async def producer_ids_below(zookeeper: str) -> int | None:
    """A bound above all allocated producer ids; 0 if none was allocated, None if ZooKeeper is unknown or unreachable.

    ``zookeeper`` is its ``host:port``, or "".
    """
    if not zookeeper:
        return None
    # imported here, because starting a cluster does not need it
    from cluster.metadata.zookeeper import ZooKeeperStore

    store = ZooKeeperStore(zookeeper, ASK_MS)
    try:
        await store.start(ASK_MS)
        data, _ = await store.get(PRODUCER_ID_BLOCK)
        return ProducerIdBlockNode.decode(data).last_id + 1 if data else 0
    except NoNodeError:
        return 0
    except (StoreError, MalformedZnode, TimeoutError, OSError) as error:
        logger.warning("cannot read which producer ids were allocated: %r", error)
        return None
    finally:
        await store.close()
