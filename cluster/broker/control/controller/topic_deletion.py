"""Deleting topics: brokers forget and erase, then the znodes go (Kafka's TopicDeletionManager).

Owns one controller's deletions. A deletion is asked for by a node in /admin/delete_topics and survives controllers.
While a replica's broker is away it waits; it is taken up again when that broker is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.controller.topic_outcomes import AdminOutcome, TopicOutcome
from cluster.broker.control.links.channels import Obeyed
from cluster.broker.control.membership.event_queue import Post, Shift
from cluster.broker.portions import chunks
from cluster.controller.context import Topic, TopicPartition
from cluster.controller.outbox import Outbox
from cluster.metadata.paths import (
    delete_topic_path,
    partition_path,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)
from cluster.metadata.store import Delete, NoNodeError
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: A topic to be deleted: its name, or (version 6) its id.
DoomedTopic = tuple[str | None, UUID | None]

#: The pause before brokers that did not delete their parts are asked again.
RETRY_S = 1.0

#: Partitions whose nodes are deleted in one multi.
CHUNK = 50
#: How many of them before others have their turn.
CHUNKS_AT_ONCE = 5


class TopicDeletion:
    """For one controller. Its methods are called by the queue of control, one at a time."""

    def __init__(self, controller: Controller, post: Post, *, enabled: bool) -> None:
        self._controller = controller
        self._context = controller.context
        self._post = post
        self._enabled = enabled
        self._in_progress: set[str] = set()
        #: One for all requests to delete a topic: who gave up waiting leaves nothing here.
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"TopicDeletion(in progress: {sorted(self._in_progress)})"

    def close(self) -> None:
        """Resigned: whether a topic goes is the next controller's, and no one waits for it here."""
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        waiting, self._waiting = self._waiting, {}
        for gone in waiting.values():
            gone.cancel()

    async def delete(self, wanted: Sequence[DoomedTopic], done: AdminOutcome, shift: Shift) -> bool:
        """Continue with DeleteTopics, of which ``done`` is done; True if that is all.

        The answers are awaited by the caller: gone from ZooKeeper.
        """
        for name, topic_id in wanted[len(done.topics) :]:
            outcome, topic = self._find(name, topic_id)
            done.topics.append(outcome)
            if topic is not None:
                await self._controller.writer.create_if_absent(delete_topic_path(topic.name))
                gone = self._waiting.get(topic.name)
                if gone is None:
                    gone = self._waiting[topic.name] = asyncio.get_running_loop().create_future()
                done.answers.append(gone)
                self._begin(topic)
            if await shift.is_over():
                break
        return len(done.topics) == len(wanted)

    def _find(self, name: str | None, topic_id: UUID | None) -> tuple[TopicOutcome, Topic | None]:
        topic = self._context.topic_by_id(topic_id) if topic_id else self._context.topics.get(name or "")
        outcome = TopicOutcome(topic.name if topic is not None else name or "")
        if topic_id:
            outcome.topic_id = topic_id
        if name is not None and topic_id:
            outcome.fail(ErrorCode.INVALID_REQUEST, "Topic name and topic id cannot both be given.")
        elif not self._enabled:
            outcome.fail(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        elif topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if topic_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            outcome.fail(code, "This server does not host this topic.")
        else:
            outcome.topic_id = topic.topic_id
            return outcome, topic
        return outcome, None

    async def deletions_changed(self) -> None:
        """/admin/delete_topics changed, or a broker came back: continue with whatever is asked for."""
        for name in await self._controller.view.deletions():
            topic = self._context.topics.get(name)
            if topic is not None:
                self._begin(topic)
            else:
                logger.warning("asked to delete topic %s, which does not exist", name)
                await self._remove(delete_topic_path(name))

    def _begin(self, topic: Topic) -> None:
        topic.deleting = True
        if topic.name in self._in_progress:
            return
        replicas = {replica for partition in topic.partitions.values() for replica in partition.replicas}
        away = sorted(replicas - self._context.registered())
        if away:
            logger.info("the deletion of topic %s waits for brokers %s", topic.name, away)
            return
        logger.info("deleting topic %s", topic.name)
        self._in_progress.add(topic.name)
        outbox = Outbox(self._context)
        outbox.add_update_metadata(TopicPartition(topic.name, number) for number in topic.partitions)
        for number, partition in topic.partitions.items():
            for replica in partition.replicas:
                outbox.add_stop_replica(replica, TopicPartition(topic.name, number), delete=True)
        answers = asyncio.gather(*self._controller.send(outbox))
        answers.add_done_callback(lambda done: self._answered(topic, done))

    def _answered(self, topic: Topic, done: asyncio.Future[list[Obeyed]]) -> None:
        self._in_progress.discard(topic.name)
        if done.cancelled():
            return
        if not all(obeyed.is_all for obeyed in done.result()):
            logger.warning("a broker did not delete its part of topic %s; it is tried again", topic.name)
            self._try_again()
            return
        self._in_progress.add(topic.name)
        self._post(lambda: self._finish(topic))

    def _try_again(self) -> None:
        """Soon, and not only when a broker comes back: the one that failed may have come back meanwhile."""
        if self._retry is None and not self._closed:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._retry_is_due)

    def _retry_is_due(self) -> None:
        self._retry = None
        self._post(self.deletions_changed)

    async def _finish(self, topic: Topic) -> None:
        """All replicas are erased: the nodes go, children first, the request for deletion last."""
        await self._finish_from(topic, [*chunks(sorted(topic.partitions), CHUNK)])

    async def _finish_from(self, topic: Topic, pieces: list[list[int]]) -> None:
        for chunk in pieces[:CHUNKS_AT_ONCE]:
            paths = [path for p in chunk for path in (state_path(topic.name, p), partition_path(topic.name, p))]
            await self._remove(*paths)
        if later := pieces[CHUNKS_AT_ONCE:]:
            self._post(lambda: self._finish_from(topic, later))
            return
        await self._remove(
            partitions_path(topic.name), topic_path(topic.name), topic_config_path(topic.name),
            delete_topic_path(topic.name),
        )  # fmt: skip
        self._in_progress.discard(topic.name)
        self._context.topics.pop(topic.name, None)
        for broker in self._context.brokers.values():
            broker.offline = {each for each in broker.offline if each.topic != topic.name}
        logger.info("topic %s is deleted", topic.name)
        gone = self._waiting.pop(topic.name, None)
        if gone is not None and not gone.done():
            gone.set_result(None)

    async def _remove(self, *paths: str) -> None:
        """Delete nodes that should be there; those that are not are no matter."""
        try:
            await self._controller.fence.write(*(Delete(path) for path in paths))
        except NoNodeError:
            for path in paths:
                try:
                    await self._controller.fence.write(Delete(path))
                except NoNodeError:
                    logger.debug("%s is gone already", path)
