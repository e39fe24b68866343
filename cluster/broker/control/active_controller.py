"""The controller of one epoch: takes over, follows the brokers' comings and goings, serves the leaders' requests.

Owns the execution of decisions: read, decide (``cluster.controller``), write through the fence, apply, send. Its
methods are called one at a time by the control plane's queue, so no two changes interleave. Any ControllerMovedError or
StoreError out of them means that this controller is over. Topics are in ``topic_admin``; elections on request,
reassignments, departures and producer ids have modules of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cluster.broker.control.channels import ChannelSet
from cluster.broker.control.requests import MadeStates, RequestBuilder
from cluster.broker.control.session import EpochFence
from cluster.broker.control.state_writer import StateWriter
from cluster.broker.control.stored_cluster import StoredCluster
from cluster.broker.journal import Journal
from cluster.controller.alter_partition import IsrVerdict, ProposedIsr, check_sender
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
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

logger = logging.getLogger(__name__)

#: New partitions that are given leaders before others have their turn.
PLACED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """What one controller is made of; the control plane puts it together when an election is won."""

    broker_id: int
    fence: EpochFence
    view: StoredCluster
    channels: ChannelSet
    rules: ControlRules
    journal: Journal
    inter_broker_listener: str


class ActiveController:
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
        return f"ActiveController({self.context!r})"

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

    async def replicas_offline(self, broker_id: int, broker_epoch: int, replicas: list[tuple[Any, int]]) -> None:
        """A broker cannot host what it was given a role in: others lead, and it is out of the in-sync sets.

        As ``KafkaController.onReplicasBecomeOffline``. It lasts until the broker comes back in another life.
        """
        broker = self.context.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            return
        topics = [(self.context.topic_by_id(topic_id), number) for topic_id, number in replicas]
        news = {TopicPartition(topic.name, number) for topic, number in topics if topic is not None} - broker.offline
        if not news:
            return
        logger.warning("broker %d cannot host %s", broker_id, ", ".join(map(str, sorted(news))))
        broker.offline |= news
        changes = await self._settle()
        outbox = Outbox(self.context)
        outbox.add_changes(changes)
        outbox.add_update_metadata(news)
        self.send(outbox)

    async def place_new_partitions(self) -> list[asyncio.Future[Any]]:
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

    def send(self, outbox: Outbox) -> list[asyncio.Future[Any]]:
        """Queue what was collected. Each future yields a broker's response, or None if the broker went away."""
        answers: list[asyncio.Future[Any]] = []
        made: MadeStates = {}
        for broker_id, parcel in sorted(outbox.parcels.items()):
            if broker_id in self.context.brokers:
                answers += self._channels.put(broker_id, self._builder.build(broker_id, parcel, made))
        return answers

    async def alter_partition(self, request: Any) -> Any:
        """AlterPartition 3 (KIP-497, KIP-903): each partition is judged, what passes is written, all brokers hear."""
        response = response_class(ApiKey.ALTER_PARTITION)
        error = check_sender(self.context, request.broker_id, request.broker_epoch)
        if error is not ErrorCode.NONE:
            return response(version=3, error_code=error, topics=[])
        verdicts: list[tuple[Any, int, IsrVerdict]] = []
        judged: set[tuple[Any, int]] = set()
        for topic in request.topics:
            for data in topic.partitions:
                proposal = _proposal(topic, data)
                if (topic.topic_id, data.partition_index) in judged:
                    verdict = IsrVerdict(ErrorCode.INVALID_REQUEST)
                else:
                    judged.add((topic.topic_id, data.partition_index))
                    verdict = self.rules.check_proposal(self.context, request.broker_id, proposal)
                if verdict.error_code is not ErrorCode.NONE:
                    logger.info("ISR proposal refused: %s: %s", verdict.error_code.name, proposal)
                verdicts.append((topic.topic_id, data.partition_index, verdict))
        changes = [verdict.change for _, _, verdict in verdicts if verdict.change is not None]
        if changes:
            await self.writer.write(changes)
            outbox = Outbox(self.context)
            outbox.add_update_metadata(change.topic_partition for change in changes)
            self.send(outbox)
        topics: dict[Any, list[Any]] = {}
        for topic_id, partition_index, verdict in verdicts:
            topics.setdefault(topic_id, []).append(self._isr_answer(response, partition_index, verdict))
        return response(
            version=3,
            error_code=ErrorCode.NONE,
            topics=[response.TopicData(topic_id=topic_id, partitions=data) for topic_id, data in topics.items()],
        )

    def _isr_answer(self, response: Any, partition_index: int, verdict: IsrVerdict) -> Any:
        partition = None if verdict.topic_partition is None else self.context.partition(verdict.topic_partition)
        state = None if partition is None else partition.state
        if verdict.error_code is not ErrorCode.NONE or state is None:
            return response.TopicData.PartitionData(
                partition_index=partition_index,
                error_code=verdict.error_code,
                leader_id=-1,
                leader_epoch=-1,
                isr=[],
                partition_epoch=-1,
            )
        return response.TopicData.PartitionData(
            partition_index=partition_index,
            error_code=ErrorCode.NONE,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
            leader_recovery_state=int(state.recovering),
            partition_epoch=state.partition_epoch,
        )

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


def _proposal(topic: Any, data: Any) -> ProposedIsr:
    return ProposedIsr(
        topic_id=topic.topic_id,
        partition=data.partition_index,
        leader_epoch=data.leader_epoch,
        partition_epoch=data.partition_epoch,
        isr=tuple((member.broker_id, member.broker_epoch) for member in data.new_isr_with_epochs),
        recovering=data.leader_recovery_state == 1,
    )
