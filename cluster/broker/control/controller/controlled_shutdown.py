"""A broker wants to go: the controller's part of a controlled shutdown (Kafka's KafkaController).

Owns who learns of it in which order, which is what decides for how long the partitions are away. Does not own who leads
next (``plan_controlled_shutdown``), the waiting for the brokers' answers, nor the leaving broker's part
(``membership.leaving``).

1. What is decided is written, and told to all brokers as metadata: a client that is refused by the old leader and asks
   anyone who leads now is sent to the right one at the first attempt.
2. The new leaders and their followers are told, and the leaving broker stops all its replicas. It does not become a
   follower, as it would in Kafka: it would fetch, its leader would want it in the ISR, and commit nothing without it
   until the controller has refused.
3. Only then is the leaving broker answered. It may be this one, and what it has not sent by then it never sends.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.controller.epoch_fence import NotController
from cluster.broker.control.links.channels import BrokerAnswer
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import ShutdownPlan, plan_controlled_shutdown
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: How long the new leaders wait for the metadata to be everywhere, and the leaving broker for the new leaders. Who
#: does not answer by then is cut off or dead, and must not keep the others. The former leaders still serve in the first
#: of these times, and no one in the second until the new ones do, which thousands of partitions take a while for.
METADATA_MS = 200
LEADERS_MS = 2000

NOTHING = ShutdownPlan((), (), ())


@dataclass(frozen=True, slots=True)
class Departure:
    """What was decided in a controller epoch. ``told`` are the brokers' answers to the metadata."""

    broker_id: int
    controller_epoch: int
    plan: ShutdownPlan = NOTHING
    told: list[BrokerAnswer] = field(default_factory=list)


async def decide(controller: Controller, broker_id: int, broker_epoch: int) -> Departure | ErrorCode:
    """Step 1: others lead what the broker led, and it is out of every ISR that has others. Or why it may not go."""
    context = controller.context
    broker = context.brokers.get(broker_id)
    if broker is None:
        return ErrorCode.BROKER_NOT_AVAILABLE
    # Kafka accepts this from brokers older than 2.2. We have none, and it would let anyone make a broker leave.
    if broker_epoch != broker.epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    if not broker.shutting_down:
        logger.info("broker %d asks for a controlled shutdown", broker.broker_id)
        broker.shutting_down = True
    plan = plan_controlled_shutdown(context, broker.broker_id)
    await controller.writer.write(plan.changes)
    news = Outbox(context)
    if plan.changes:
        news.add_update_metadata(change.topic_partition for change in plan.changes)
    return Departure(broker_id, controller.epoch, plan, controller.send(news))


async def carry_out(controller: Controller, departure: Departure) -> list[BrokerAnswer]:
    """Step 2, in the states of now. The futures are the brokers' answers.

    Raises NotController if another epoch has begun since, whose controller knows of no one's leaving.
    """
    if controller.epoch != departure.controller_epoch:
        raise NotController(f"controller epoch {departure.controller_epoch} is over")
    outbox = Outbox(controller.context)
    for change in departure.plan.changes:
        outbox.add_leader_and_isr(change.topic_partition, but=departure.broker_id)
    for topic_partition in departure.plan.stop:
        outbox.add_stop_replica(departure.broker_id, topic_partition, delete=False)
    return controller.send(outbox)
