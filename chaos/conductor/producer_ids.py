"""Which producer ids the cluster handed out, asked of ZooKeeper when all clients are done.

Owns the one question. The verifier draws the conclusions (``unknown-producer-id``). A question without an answer is
logged here and does not end the run; the verifier then says ``unknown``.
"""

from __future__ import annotations

import logging

from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.metadata.store import NoNodeError, StoreError
from cluster.metadata.znodes import MalformedZnode, ProducerIdBlockNode

logger = logging.getLogger(__name__)

#: ZooKeeper may have been restarted just before, and without an answer the run cannot be judged.
ASK_MS = 30_000


async def producer_ids_below(zookeeper: str) -> int | None:
    """Every id that was handed out is below; 0 if none ever was, None if ZooKeeper is not known or cannot be asked."""
    if not zookeeper:
        return None
    # loaded when it is first used: starting a cluster asks nothing
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
