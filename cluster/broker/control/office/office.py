"""One controllership, put together when its election is won: the controller of that epoch and what it does on request.

Owns the wiring of these. Does not own when it begins and ends (``Candidate``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from cluster.broker.control.controller.cluster_reader import ClusterReader
from cluster.broker.control.controller.controller import Controller, ControllerParts
from cluster.broker.control.controller.elections import Elections
from cluster.broker.control.controller.epoch_fence import EpochFence
from cluster.broker.control.controller.offline_replicas import OfflineReplicas
from cluster.broker.control.controller.reassignments import Reassignments
from cluster.broker.control.controller.topic_deletion import TopicDeletion
from cluster.broker.control.controller.topics import Topics
from cluster.broker.control.links.channels import ChannelSet
from cluster.broker.control.links.peers import Peer
from cluster.broker.control.membership.event_queue import Event, EventQueue, Shift
from cluster.broker.control.membership.session import Session
from cluster.broker.journal import Journal
from cluster.config.broker import BrokerConfig
from cluster.controller.rules import ControlRules
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random


@dataclass(frozen=True, slots=True)
class Office:
    """One controllership."""

    controller: Controller
    topics: Topics
    deletion: TopicDeletion
    reassignments: Reassignments
    elections: Elections
    offline: OfflineReplicas
    #: For an event that begins now.
    shift: Callable[[], Shift]

    def close(self) -> None:
        """Resigned: nothing more is written, sent, looked at or waited for."""
        self.elections.close()
        self.offline.close()
        self.deletion.close()
        self.controller.close()


@dataclass(frozen=True, slots=True)
class OfficeParts:
    """What a candidate, and the office it may win, need of their broker."""

    broker_id: int
    session: Session
    queue: EventQueue
    clock: Clock
    random: Random
    properties: BrokerConfig
    rules: ControlRules
    journal: Journal
    inter_broker_listener: str
    peer_for: Callable[[int], Peer]
    may_run: Callable[[], bool]
    controller_changed: Callable[[int | None], None]
    #: Whether topics that do not say may be led from outside the ISR, by this broker's configuration of now.
    unclean_by_default: Callable[[], bool]


#: Does something in the queue on behalf of an office; nothing if that is over by then.
Heed = Callable[[Callable[[Office], Awaitable[None]], Office], Awaitable[None]]


def enter_office(parts: OfficeParts, fence: EpochFence, heed: Heed, look_again: Callable[[], None]) -> Office:
    """The office of the epoch of ``fence``. ``look_again`` is called when a broker says that the epoch is over."""

    def replicas_offline(broker_id: int, broker_epoch: int, replicas: list[tuple[UUID, int]]) -> None:
        post(lambda: offline.add(broker_id, broker_epoch, replicas), patient=False)

    controller = Controller(
        ControllerParts(
            broker_id=parts.broker_id,
            fence=fence,
            view=ClusterReader(parts.session, unclean_by_default=parts.unclean_by_default),
            channels=ChannelSet(parts.peer_for, look_again, replicas_offline),
            rules=parts.rules,
            journal=parts.journal,
            inter_broker_listener=parts.inter_broker_listener,
        )
    )

    def post(event: Event, *, patient: bool = True) -> None:
        parts.queue.post(lambda: heed(lambda _: event(), office), patient=patient)

    offline = OfflineReplicas(controller, post)
    office = Office(
        controller,
        Topics(controller, parts.properties, parts.random),
        TopicDeletion(controller, post, enabled=parts.properties["delete.topic.enable"]),
        Reassignments(controller, post),
        Elections(controller, parts.properties, post),
        offline,
        lambda: Shift(parts.queue, parts.clock),
    )
    return office
