"""OfflineReplicas: replicas that a broker reports it cannot host, retried until it can.

As ``KafkaController.onReplicasBecomeOffline``: others lead, and the replica is out of the in-sync sets. Unlike Kafka's,
our broker may only lack file descriptors for a log (``cluster.log.errors.OutOfFiles``), which can end without a
restart. So the controller sends it LeaderAndIsr again, with growing pauses. Does not own what a report means
(``cluster.controller.offline``), the broker's answer, nor the elections that follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.links.channels import BrokerAnswer
from cluster.broker.control.membership.event_queue import Post
from cluster.controller.context import TopicPartition
from cluster.controller.offline import Named, OfflineReports
from cluster.controller.outbox import Outbox

logger = logging.getLogger(__name__)

#: Replicas that the log names.
NAMED = 10


class OfflineReplicas:
    """For one controller. Its events are posted to the queue of control, one at a time."""

    def __init__(self, controller: Controller, post: Post) -> None:
        self._controller = controller
        self._context = controller.context
        self._reports = OfflineReports(controller.context)
        self._post = post
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<OfflineReplicas: {sum(len(broker.offline) for broker in self._context.brokers.values())}>"

    def close(self) -> None:
        """Resigned: no one is asked anymore."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def add(self, broker_id: int, broker_epoch: int, replicas: Sequence[Named]) -> None:
        """A broker cannot host these replicas that it was given a role in."""
        news = self._reports.cannot_host(broker_id, broker_epoch, replicas)
        if news:
            some = ", ".join(map(str, sorted(news)[:NAMED]))
            logger.warning("broker %d cannot host %d replicas: %s%s", broker_id, len(news), some, _dots(news))
            self._ask_later()
            await self._controller.settle_and_tell(news)

    def _ask_later(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._reports.pause_s, self._post, self._ask)

    async def _ask(self) -> None:
        """Tell the brokers their roles in what they could not host."""
        self._timer = None
        for broker, replicas in self._reports.to_ask():
            outbox = Outbox(self._context)
            outbox.add_leader_and_isr_again(broker.broker_id, replicas)
            for answer in self._controller.send(outbox):
                answer.add_done_callback(partial(self._answered, broker.broker_id, broker.epoch))
            self._ask_later()

    def _answered(self, broker_id: int, broker_epoch: int, done: BrokerAnswer) -> None:
        hosted = () if done.cancelled() else done.result().hosted
        if hosted:
            self._post(lambda: self._remove(broker_id, broker_epoch, hosted))

    async def _remove(self, broker_id: int, broker_epoch: int, replicas: Sequence[Named]) -> None:
        back = self._reports.can_host(broker_id, broker_epoch, replicas)
        if back:
            left = len(self._context.brokers[broker_id].offline)
            logger.info("broker %d can host %d replicas after all; not yet: %d", broker_id, len(back), left)
            await self._controller.settle_and_tell(back)


def _dots(names: set[TopicPartition]) -> str:
    return ", ..." if len(names) > NAMED else ""
