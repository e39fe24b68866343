"""ISR changes at the controller: each proposal of a leader is judged, what passes is written, all brokers hear.

Owns that order (KIP-497). Does not own the judgment (``cluster.controller.alter_partition``) nor the layout
(``handlers.alter_partition``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from cluster.broker.control.controller.controller import Controller
from cluster.controller.alter_partition import check_sender
from cluster.controller.context import TopicPartition
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import Change
from cluster.isr import IsrAnswer, IsrProposal, PartitionId
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


#: In the order in which it was asked. A partition may be named twice.
Proposals = Iterable[tuple[PartitionId, IsrProposal]]
IsrAnswers = list[tuple[PartitionId, IsrAnswer]]


async def alter_partition(
    controller: Controller, broker_id: int, broker_epoch: int, proposals: Proposals
) -> IsrAnswers | ErrorCode:
    """What becomes of the ``proposals`` of a leader, one by one, or why it is not listened to."""
    error = check_sender(controller.context, broker_id, broker_epoch)
    if error is not ErrorCode.NONE:
        return error
    verdicts = _judge(controller, broker_id, proposals)
    changes = [verdict for _, verdict in verdicts if isinstance(verdict, Change)]
    if changes:
        await controller.writer.write(changes)
        outbox = Outbox(controller.context)
        outbox.add_update_metadata(change.topic_partition for change in changes)
        controller.send(outbox)
    return [(partition_id, _answer(controller, partition_id, verdict)) for partition_id, verdict in verdicts]


def _judge(
    controller: Controller, broker_id: int, proposals: Proposals
) -> list[tuple[PartitionId, Change | ErrorCode]]:
    verdicts: dict[PartitionId, Change | ErrorCode] = {}
    found = []
    for partition_id, proposal in proposals:
        if partition_id in verdicts:
            verdict: Change | ErrorCode = ErrorCode.INVALID_REQUEST
        else:
            verdict = controller.rules.check_proposal(controller.context, broker_id, *partition_id, proposal)
            verdicts[partition_id] = verdict
        if isinstance(verdict, ErrorCode) and verdict is not ErrorCode.NONE:
            topic_id, number = partition_id
            logger.info("ISR proposal refused: %s: partition %d of %s: %s", verdict.name, number, topic_id, proposal)
        found.append((partition_id, verdict))
    return found


def _answer(controller: Controller, partition_id: PartitionId, verdict: Change | ErrorCode) -> IsrAnswer:
    """In the state of now, which a change that was written is part of."""
    if isinstance(verdict, ErrorCode) and verdict is not ErrorCode.NONE:
        return IsrAnswer(verdict)
    topic_id, number = partition_id
    topic = controller.context.topic_by_id(topic_id)
    partition = None if topic is None else controller.context.partition(TopicPartition(topic.name, number))
    state = None if partition is None else partition.state
    if state is None:
        return IsrAnswer(ErrorCode.NONE)
    return IsrAnswer(
        ErrorCode.NONE, state.leader_epoch, state.isr, state.partition_epoch, state.leader, state.recovering
    )
