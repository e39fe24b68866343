"""OfflineReplicas: replicas that a broker reports it cannot host, retried until it can.

As ``KafkaController.onReplicasBecomeOffline``: others lead, and the replica is out of the in-sync sets. Unlike Kafka's,
our broker may only lack file descriptors for a log (``cluster.log.errors.OutOfFiles``), which can end without a
restart. So the controller sends it LeaderAndIsr again, with growing pauses. Does not own the broker's answer, nor the
elections that follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.membership.event_queue import Post
from cluster.controller.context import Broker, TopicPartition
from cluster.controller.outbox import Outbox
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: The first pause before brokers are asked again; each later one is twice as long, up to the second.
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
#: Replicas that the log names.
NAMED = 10


class OfflineReplicas:
    """For one controller. Its events are posted to the queue of control, one at a time."""

    def __init__(self, controller: Controller, post: Post) -> None:
        self._controller = controller
        self._context = controller.context
        self._post = post
        self._pause_s = FIRST_PAUSE_S
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<OfflineReplicas: {sum(len(broker.offline) for broker in self._context.brokers.values())}>"

    def close(self) -> None:
        """Resigned: no one is asked anymore."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def add(self, broker_id: int, broker_epoch: int, replicas: Sequence[tuple[Any, int]]) -> None:
        """A broker cannot host these replicas, by topic id and number, that it was given a role in."""
        broker = self._broker(broker_id, broker_epoch)
        if broker is None:
            return
        news = self._named(replicas) - broker.offline
        if not news:
            return
        some = ", ".join(map(str, sorted(news)[:NAMED]))
        logger.warning("broker %d cannot host %d replicas: %s%s", broker_id, len(news), some, _dots(news))
        broker.offline |= news
        self._pause_s = FIRST_PAUSE_S
        self._ask_later()
        await self._controller.settle_and_tell(news)

    def _broker(self, broker_id: int, broker_epoch: int) -> Broker | None:
        """None if it has begun another life since."""
        broker = self._context.brokers.get(broker_id)
        return broker if broker is not None and broker.epoch == broker_epoch else None

    def _named(self, replicas: Sequence[tuple[Any, int]]) -> set[TopicPartition]:
        names = {topic_id: self._context.topic_by_id(topic_id) for topic_id in {each for each, _ in replicas}}
        found = ((names[topic_id], number) for topic_id, number in replicas)
        return {TopicPartition(topic.name, number) for topic, number in found if topic is not None}

    def _ask_later(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._post, self._ask)

    async def _ask(self) -> None:
        """Tell the brokers their roles in what they could not host."""
        self._timer = None
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        for broker in self._context.brokers.values():
            # What was moved to others, or deleted, is not theirs anymore.
            broker.offline -= {each for each in broker.offline if not self._is_of(broker.broker_id, each)}
            if broker.offline:
                outbox = Outbox(self._context)
                outbox.add_leader_and_isr_again(broker.broker_id, sorted(broker.offline))
                for answer in self._controller.send(outbox):
                    answer.add_done_callback(partial(self._answered, broker.broker_id, broker.epoch))
                self._ask_later()

    def _is_of(self, broker_id: int, topic_partition: TopicPartition) -> bool:
        partition = self._context.partition(topic_partition)
        return partition is not None and broker_id in partition.replicas

    def _answered(self, broker_id: int, broker_epoch: int, done: asyncio.Future[Any]) -> None:
        response = None if done.cancelled() else done.result()
        hosted = [
            (topic.topic_id, error.partition_index)
            for topic in getattr(response, "topics", ())
            for error in topic.partition_errors
            if error.error_code == ErrorCode.NONE
        ]
        if hosted:
            self._post(lambda: self._remove(broker_id, broker_epoch, hosted))

    async def _remove(self, broker_id: int, broker_epoch: int, replicas: Sequence[tuple[Any, int]]) -> None:
        broker = self._broker(broker_id, broker_epoch)
        if broker is None:
            return
        back = self._named(replicas) & broker.offline
        if back:
            left = len(broker.offline - back)
            logger.info("broker %d can host %d replicas after all; not yet: %d", broker_id, len(back), left)
            broker.offline -= back
            await self._controller.settle_and_tell(back)


def _dots(names: set[TopicPartition]) -> str:
    return ", ..." if len(names) > NAMED else ""
