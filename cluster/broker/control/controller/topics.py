"""Topics as the controller makes them: creation and more partitions. Deletion is in ``topic_deletion``.

Owns the execution for one controller; the checks are ``cluster.controller.topics``. Order of writing: the topic's
configuration first, then the topic (Kafka's AdminZkClient), then the partitions' states.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.controller.topic_outcomes import AdminOutcome, TopicOutcome
from cluster.broker.control.membership.event_queue import Shift
from cluster.config.asked import check_asked
from cluster.config.broker import BrokerConfig
from cluster.config.errors import ConfigError
from cluster.config.topic import TOPIC_KEYS, validate
from cluster.controller.context import Partition, Topic
from cluster.controller.topics import (
    GrowthRequest,
    TopicError,
    TopicRequest,
    check_name,
    plan_added_partitions,
    plan_assignment,
)
from cluster.metadata.limits import check_growth
from cluster.metadata.paths import topic_config_path, topic_path
from cluster.metadata.store import (
    Create,
    NodeExistsError,
    NoNodeError,
    NotWrittenError,
    SetData,
    StoreError,
    TooLargeError,
)
from cluster.metadata.znodes import TopicRegistration, encode_config
from cluster.protocol.errors import ErrorCode
from cluster.seams.randomness import Random, derive

logger = logging.getLogger(__name__)

#: What makes a topic impossible, and leaves the controller as it was.
_UNWRITABLE = (TooLargeError, NotWrittenError)


class Topics:
    """For one controller. Its methods are called by the queue of control, one at a time."""

    def __init__(self, controller: Controller, properties: BrokerConfig, random: Random) -> None:
        self._controller = controller
        self._context = controller.context
        self._properties = properties
        self._random = random

    def __repr__(self) -> str:
        return f"Topics({self._controller!r})"

    async def create(
        self, wanted: Sequence[TopicRequest], done: AdminOutcome, shift: Shift, *, validate_only: bool
    ) -> bool:
        """Continue with the topics that are ``wanted``, of which ``done`` are done; True if those are all. Each
        succeeds or fails by itself."""
        names = Counter(topic.name for topic in wanted)
        room = done.room
        created = []
        for topic in wanted[len(done.topics) :]:
            outcome = TopicOutcome(topic.name)
            done.topics.append(outcome)
            try:
                if names[topic.name] > 1:
                    raise TopicError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: '{topic.name}'.")
                self._plan(topic, outcome, room)
                room -= len(outcome.assignment)
                if not validate_only:
                    await self._write(outcome)
                    created.append(outcome)
            except TopicError as error:
                outcome.fail(error.error_code, error.message)
            if await shift.is_over():
                break
        for outcome in created:
            logger.info("topic %s created: %d partitions", outcome.name, len(outcome.assignment))
        return await self._place(done, len(wanted), shift, has_new=bool(created))

    async def _place(self, done: AdminOutcome, topics: int, shift: Shift, *, has_new: bool) -> bool:
        """Give leaders to what is new, as far as the shift reaches; True if all ``topics`` are done with."""
        done.is_placing |= has_new
        while done.is_placing:
            done.answers += await self._controller.place_new_partitions()
            done.is_placing = self._controller.has_new_partitions
            if await shift.is_over():
                break
        return not done.is_placing and len(done.topics) == topics

    def _plan(self, topic: TopicRequest, outcome: TopicOutcome, room: int) -> None:
        check_name(topic.name, self._context.topics)
        config = {}
        for key, value in topic.config:
            if value is None:
                raise TopicError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {key}")
            config[key] = value
        try:
            validate(config)
            outcome.config = TOPIC_KEYS.normal(config)
            check_asked(outcome.config, {}, self._properties)
        except ConfigError as error:
            raise TopicError(ErrorCode.INVALID_CONFIG, str(error)) from error
        outcome.assignment = plan_assignment(
            topic,
            self._context.eligible(),
            self._random,
            default_partitions=self._properties["num.partitions"],
            default_replication_factor=self._properties["default.replication.factor"],
            room=room,
        )

    async def _write(self, outcome: TopicOutcome) -> None:
        fence = self._controller.fence
        outcome.topic_id = self._draw_topic_id()
        config_path, config = topic_config_path(outcome.name), encode_config(outcome.config)
        topic = Create(topic_path(outcome.name), TopicRegistration(outcome.topic_id, outcome.assignment).encode())
        try:
            check_growth(topic.path, topic.data)
            if await fence.session.read(lambda: fence.session.store.exists(config_path)) is None:
                await fence.write(Create(config_path, config), topic)
            else:
                # What a former topic of this name, or an attempt that was cut short, left behind.
                await fence.write(SetData(config_path, config), topic)
        except NodeExistsError as error:
            raise TopicError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{outcome.name}' already exists.") from error
        except _UNWRITABLE as error:
            raise _unwritable(error) from error
        self._context.topics[outcome.name] = Topic(
            outcome.name,
            outcome.topic_id,
            {number: Partition(replicas) for number, replicas in outcome.assignment.items()},
            unclean=self._controller.view.is_unclean(dict(outcome.config)),
        )

    def _draw_topic_id(self) -> UUID:
        """Random, version 4. Not one whose text begins with a dash: Kafka's tools would take it for an option.

        A broker that is started again with its seed draws what it drew before. The controller epoch is another one
        then, so that no two topics ever have one id.
        """
        while True:
            drawn = derive(self._random.getrandbits(64), "topic id", self._context.controller_epoch)
            topic_id = UUID(bytes=drawn.randbytes(16), version=4)
            if topic_id.bytes[0] >> 2 != 0b111110:
                return topic_id

    async def create_partitions(
        self, wanted: Sequence[GrowthRequest], done: AdminOutcome, shift: Shift, *, validate_only: bool
    ) -> bool:
        """Continue with topics that are to grow, as with ``create``."""
        names = Counter(topic.name for topic in wanted)
        room, has_grown = done.room, False
        for topic in wanted[len(done.topics) :]:
            outcome = TopicOutcome(topic.name)
            done.topics.append(outcome)
            try:
                if names[topic.name] > 1:
                    raise TopicError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: '{topic.name}'.")
                await self._grow(topic, outcome, room, validate_only=validate_only)
                room -= len(outcome.assignment)
                has_grown = not validate_only
            except TopicError as error:
                outcome.fail(error.error_code, error.message)
            if await shift.is_over():
                break
        return await self._place(done, len(wanted), shift, has_new=has_grown)

    async def _grow(self, wanted: GrowthRequest, outcome: TopicOutcome, room: int, *, validate_only: bool) -> None:
        topic = self._context.topics.get(wanted.name)
        if topic is None or topic.deleting:
            raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wanted.name}' does not exist.")
        if any(partition.adding or partition.removing for partition in topic.partitions.values()):
            raise TopicError(ErrorCode.REASSIGNMENT_IN_PROGRESS, "A partition reassignment is in progress.")
        existing = {number: partition.replicas for number, partition in topic.partitions.items()}
        live = self._context.eligible()
        added = plan_added_partitions(existing, wanted.partitions, wanted.assignments, live, room)
        outcome.assignment = added
        if validate_only:
            return
        path = topic_path(topic.name)
        fence = self._controller.fence
        try:
            before, stat = await fence.session.read(lambda: fence.session.store.get(path))
        except NoNodeError as error:
            raise TopicError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wanted.name}' does not exist."
            ) from error
        data = TopicRegistration(topic.topic_id, {**existing, **added}).encode()
        try:
            check_growth(path, data, len(before))
            await fence.write(SetData(path, data, stat.version))
        except _UNWRITABLE as error:
            raise _unwritable(error) from error
        for number, replicas in added.items():
            topic.partitions[number] = Partition(replicas)
        logger.info("topic %s grows to %d partitions", topic.name, len(topic.partitions))

    async def topics_changed(self) -> None:
        """/brokers/topics changed: take in topics that were not made here, forget those that are gone."""
        names = set(await self._controller.view.topic_names())
        new = sorted(names - set(self._context.topics))
        gone = sorted(name for name, topic in self._context.topics.items() if name not in names and not topic.deleting)
        for name in gone:
            logger.warning("topic %s vanished from ZooKeeper", name)
            del self._context.topics[name]
        if new:
            found = await self._controller.view.topics(new)
            self._controller.fence.check_held()
            if found:
                logger.info("topics found: %s", sorted(found))
                self._context.topics.update(found)
                await self._controller.place_new_partitions()
                while self._controller.has_new_partitions:
                    await self._controller.place_new_partitions()


def _unwritable(error: StoreError) -> TopicError:
    """Nothing was written, and to try again would not help."""
    if isinstance(error, TooLargeError):
        return TopicError(ErrorCode.POLICY_VIOLATION, f"It does not fit into ZooKeeper: {error}.")
    return TopicError(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper does not take it: {error}.")
