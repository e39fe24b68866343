"""The controller of one epoch: takes over, follows the brokers' comings and goings, tells what is new.

Owns the execution of decisions: read, decide (``cluster.controller``), write through the fence, apply, send. Its
methods are called one at a time by the queue of control, so no two changes interleave. Any ControllerMovedError or
StoreError out of them means that this controller is over. ISR changes, topics, elections on request,
reassignments, controlled shutdowns, replicas that a broker cannot host and producer ids have modules of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from cluster.broker.control.controller.cluster_reader import ClusterReader
from cluster.broker.control.controller.epoch_fence import EpochFence
from cluster.broker.control.controller.state_writer import StateWriter
from cluster.broker.control.links.channels import BrokerAnswer, ChannelSet
from cluster.broker.control.links.messages import MadeStates, RequestBuilder
from cluster.broker.journal import Journal
from cluster.controller.context import ControllerContext, TopicPartition
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import (
    Change,
    add_brokers,
    compare_brokers,
    plan_new,
    plan_repairs,
    plan_unseen_bounces,
    remove_brokers,
)
from cluster.controller.rules import ControlRules
from cluster.metadata.znodes import BrokerRegistration

logger = logging.getLogger(__name__)

#: New partitions that are given leaders before others have their turn.
PLACED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """What one controller is made of; ``office`` puts it together when an election is won."""

    broker_id: int
    fence: EpochFence
    view: ClusterReader
    channels: ChannelSet
    rules: ControlRules
    journal: Journal
    inter_broker_listener: str


class Controller:
    """One controller, from the election it won to its resignation."""

    def __init__(self, parts: ControllerParts) -> None:
        self.fence = parts.fence
        self.view = parts.view
        self.rules = parts.rules
        self.context = ControllerContext(parts.fence.epoch)
        self.writer = StateWriter(parts.fence, self.context, parts.journal)
        self._channels = parts.channels
        self.journal = parts.journal
        self._registrations: dict[int, BrokerRegistration] = {}
        self._builder = RequestBuilder(parts.broker_id, self.context, self._registrations, parts.inter_broker_listener)

    def __repr__(self) -> str:
        return f"Controller({self.context!r})"

    @property
    def epoch(self) -> int:
        return self.context.controller_epoch

    def close(self) -> None:
        """Resigned: nothing more is written or sent."""
        self.fence.revoke()
        self._channels.close_all()

    async def take_over(self) -> None:
        """Read everything, tell every broker, elect missing leaders (KafkaController.onControllerFailover)."""
        found = await self.view.brokers()
        self._admit(found, sorted(found))
        self.context.topics.update(await self.view.topics(await self.view.topic_names()))
        for name in await self.view.deletions():
            if name in self.context.topics:
                self.context.topics[name].deleting = True
        self.fence.check_held()
        logger.info("controller epoch %d takes over: %r", self.epoch, self.context)
        greeting = Outbox(self.context)
        for broker_id in self.context.brokers:
            greeting.add_all_metadata(broker_id)
        self.send(greeting)
        unseen = plan_unseen_bounces(self.context, self.rules.elect_offline)
        await self.writer.write(unseen)
        changes = [*unseen, *await self._settle()]
        news = Outbox(self.context)
        for broker_id in self.context.brokers:
            news.add_all_leader_and_isr(broker_id)
        news.add_changes(changes)
        self.send(news)

    async def brokers_changed(self) -> bool:
        """Compare /brokers/ids with what we knew: deaths, then arrivals; a bounce is both. True if any arrived."""
        found = await self.view.brokers()
        self.fence.check_held()
        changes = compare_brokers(self.context, {broker_id: epoch for broker_id, (epoch, _) in found.items()})
        if changes.nothing:
            return False
        logger.info("brokers: %s", changes)
        self.journal(
            "brokers-changed",
            {"started": [*changes.started], "gone": [*changes.gone], "bounced": [*changes.bounced]},
        )
        lost = sorted((*changes.gone, *changes.bounced))
        if lost:
            await self._after_failure(lost)
        arrived = sorted((*changes.started, *changes.bounced))
        if arrived:
            await self._after_start(found, arrived)
        return bool(arrived)

    async def _after_failure(self, lost: list[int]) -> None:
        concerned = sorted({tp for broker_id in lost for tp in self.context.hosted_by(broker_id)})
        remove_brokers(self.context, lost)
        self._channels.close(lost)
        for broker_id in lost:
            self._registrations.pop(broker_id, None)
        changes = plan_repairs(self.context, self.rules.elect_offline)
        await self.writer.write(changes)
        outbox = Outbox(self.context)
        outbox.add_changes(changes)
        outbox.add_update_metadata(concerned)
        self.send(outbox)

    async def _after_start(self, found: dict[int, tuple[int, BrokerRegistration]], arrived: list[int]) -> None:
        self._admit(found, arrived)
        greeting = Outbox(self.context)
        greeting.add_update_metadata(sorted({tp for b in arrived for tp in self.context.hosted_by(b)}))
        for broker_id in arrived:
            greeting.add_all_metadata(broker_id)
        self.send(greeting)
        changes = await self._settle()
        news = Outbox(self.context)
        for broker_id in arrived:
            news.add_all_leader_and_isr(broker_id)
        news.add_changes(changes)
        self.send(news)

    def _admit(self, found: dict[int, tuple[int, BrokerRegistration]], broker_ids: Iterable[int]) -> None:
        ids = list(broker_ids)
        add_brokers(self.context, {broker_id: found[broker_id][0] for broker_id in ids}, ids)
        for broker_id in ids:
            self._registrations[broker_id] = found[broker_id][1]
            self._channels.open(broker_id, found[broker_id][0])

    async def _settle(self) -> list[Change]:
        """Write what the brokers that are here make necessary or possible: repairs, and leaders of new partitions."""
        changes = [*plan_repairs(self.context, self.rules.elect_offline), *plan_new(self.context)]
        await self.writer.write(changes)
        return changes

    async def settle_and_tell(self, concerned: Iterable[TopicPartition]) -> None:
        """The same, then tell the brokers, all of them also of the replicas of ``concerned`` that can be hosted now."""
        changes = await self._settle()
        outbox = Outbox(self.context)
        outbox.add_changes(changes)
        outbox.add_update_metadata(concerned)
        self.send(outbox)

    async def place_new_partitions(self) -> list[BrokerAnswer]:
        """Leaders for some of the partitions that were added to the context. The futures are the brokers' answers."""
        changes = plan_new(self.context)[:PLACED_AT_ONCE]
        await self.writer.write(changes)
        outbox = Outbox(self.context)
        outbox.add_changes(changes)
        return self.send(outbox)

    @property
    def has_new_partitions(self) -> bool:
        """Whether ``place_new_partitions`` has left some."""
        return bool(plan_new(self.context))

    def send(self, outbox: Outbox) -> list[BrokerAnswer]:
        """Queue what was collected. The futures are the brokers' answers."""
        answers: list[BrokerAnswer] = []
        made: MadeStates = {}
        for broker_id, parcel in sorted(outbox.parcels.items()):
            if broker_id in self.context.brokers:
                answers += self._channels.put(broker_id, self._builder.build(broker_id, parcel, made))
        return answers

    async def configs_changed(self, name: str | None) -> None:
        """The configuration of a topic (None: of this broker) has changed: what concerns elections is taken over."""
        named = [topic for topic in self.context.topics.values() if name in (None, topic.name)]
        configs = await asyncio.gather(*(self.view.topic_config(topic.name) for topic in named))
        self.fence.check_held()
        is_newly_unclean = False
        for topic, config in zip(named, configs, strict=True):
            was_unclean, topic.unclean = topic.unclean, self.view.is_unclean(config)
            is_newly_unclean |= topic.unclean and not was_unclean
        if is_newly_unclean:
            # What has waited for its in-sync replicas need not wait any longer.
            outbox = Outbox(self.context)
            outbox.add_changes(await self._settle())
            self.send(outbox)
