"""Producer ids at the controller: the next block for a broker, recorded before it is handed out.

Owns the compare-and-set on ``/latest_producer_id_block`` (Kafka's ZkProducerIdManager). Does not own the arithmetic
(``cluster.controller.producer_ids``) nor a broker's use of its blocks (``links.producer_ids``).
"""

from __future__ import annotations

import logging

from cluster.broker.control.controller.controller import Controller
from cluster.controller.producer_ids import ProducerIdBlock, ProducerIdsExhausted
from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.metadata.store import BadVersionError, NoNodeError, SetData
from cluster.metadata.znodes import MalformedZnode, ProducerIdBlockNode
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


async def allocate_producer_ids(
    controller: Controller, broker_id: int, broker_epoch: int
) -> ProducerIdBlock | ErrorCode:
    """The next block for a broker, recorded by compare-and-set before it is handed out (ZkProducerIdManager)."""
    broker = controller.context.brokers.get(broker_id)
    if broker is None:
        return ErrorCode.BROKER_ID_NOT_REGISTERED
    if broker_epoch != broker.epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    store = controller.fence.session.store
    while True:
        try:
            data, stat = await controller.fence.session.read(lambda: store.get(PRODUCER_ID_BLOCK))
        except NoNodeError:
            await controller.writer.create_if_absent(PRODUCER_ID_BLOCK)
            continue
        try:
            latest = ProducerIdBlockNode.decode(data).last_id if data else None
            block = controller.rules.next_block(latest)
        except (ProducerIdsExhausted, MalformedZnode) as error:
            logger.critical("no producer ids can be handed out: %s", error)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        node = ProducerIdBlockNode(broker_id, block.first_id, block.last_id)
        try:
            await controller.fence.write(SetData(PRODUCER_ID_BLOCK, node.encode(), stat.version))
        except BadVersionError:
            logger.info("another writer took producer ids first; reading again")
            continue
        controller.journal("producer-ids", {"broker": broker_id, "first": block.first_id, "last": block.last_id})
        return block
