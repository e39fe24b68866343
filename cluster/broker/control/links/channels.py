"""The controller's way to each broker: one queue per broker, in order, retried until done or the broker is gone.

Owns the queues and the retries (ControllerChannelManager). Does not own the requests' content, nor the connection: it
is given a ``Peer`` for each broker, which for the controller's own broker is a call within the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from cluster.broker.control.links.messages import ControlAnswer, ControlRequest
from cluster.broker.control.links.peers import Peer
from cluster.metadata.store import StoreError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import LeaderAndIsrResponse, StopReplicaResponse
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)


#: The pause before a request is sent again, as in Kafka's controller channel.
RETRY_S = 0.1
#: A broker that answers an error which is not about epochs, or chokes, is asked this often, then the request is
#: abandoned: one request that it cannot process must not keep all others from it.
MAX_REFUSALS = 5
#: How often a request that waits looks whether its client is still there.
LOOK_S = 1.0
#: What a broker answers for a replica that it cannot host: its log is damaged, or that of a former topic.
_OFFLINE = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.INCONSISTENT_TOPIC_ID)
#: Per partition: done, or done before (a repeated request, or one that a newer leader epoch has overtaken).
_HARMLESS = (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)


class Obeyed(NamedTuple):
    """What a broker has done of what one request told it. ``hosted``: the replicas (topic id, partition) that have
    taken a role."""

    is_all: bool
    hosted: Sequence[tuple[UUID, int]] = ()


#: Of a broker that went away before it answered.
NOT_OBEYED = Obeyed(is_all=False)

#: Yields what became of one request.
BrokerAnswer = asyncio.Future[Obeyed]
#: (broker, its epoch, [(topic id, partition)]) of replicas that a broker says it cannot host.
OnOffline = Callable[[int, int, list[tuple[UUID, int]]], None]


class BrokerChannel:
    """One broker in one of its lives."""

    def __init__(
        self, broker_id: int, broker_epoch: int, peer: Peer, on_stale: Callable[[], None], on_offline: OnOffline
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._peer = peer
        self._on_stale = on_stale
        self._on_offline = on_offline
        self._queue: deque[tuple[ControlRequest, BrokerAnswer]] = deque()
        self._wake = asyncio.Event()
        self._unreachable = False
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"control-channel-{broker_id}")

    def __repr__(self) -> str:
        return f"BrokerChannel(broker {self.broker_id}, epoch {self.broker_epoch}, {len(self._queue)} queued)"

    def put(self, request: ControlRequest) -> BrokerAnswer:
        """Queue a request."""
        answered: BrokerAnswer = asyncio.get_running_loop().create_future()
        self._queue.append((request, answered))
        self._wake.set()
        return answered

    def close(self) -> None:
        """The broker is gone, or this controller is: nothing more is sent, and no one waits any longer."""
        self._task.cancel()
        self._peer.close()
        for _, answered in self._queue:
            if not answered.done():
                answered.set_result(NOT_OBEYED)
        self._queue.clear()

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            request, answered = self._queue[0]
            response = await self._deliver(request)
            if not answered.done():
                answered.set_result(NOT_OBEYED if response is None else _obeyed(response))
            self._queue.popleft()

    async def _deliver(self, request: ControlRequest) -> ControlAnswer | None:
        refusals = 0
        while True:
            try:
                response: ControlAnswer = await self._peer.ask(request.message, request.version)
            except (OSError, StoreError) as error:
                if not self._unreachable:
                    self._unreachable = True
                    logger.warning("the controller cannot reach broker %d: %r", self.broker_id, error)
                await asyncio.sleep(RETRY_S)
                continue
            except Exception as error:
                halt_if_out_of_memory(error)
                refusals += 1
                logger.exception("%s to broker %d failed", _name(request), self.broker_id)
                if refusals == MAX_REFUSALS:
                    return None
                await asyncio.sleep(RETRY_S)
                continue
            if self._unreachable:
                self._unreachable = False
                logger.info("broker %d answers the controller again", self.broker_id)
            code = response.error_code
            if code == ErrorCode.NONE:
                self._note_partition_errors(request, response)
                return response
            if code == ErrorCode.STALE_CONTROLLER_EPOCH:
                self._on_stale()
                return response
            # A stale broker epoch does not last: either the broker learns its new number, or we learn of its death.
            if code != ErrorCode.STALE_BROKER_EPOCH:
                refusals += 1
                if refusals == MAX_REFUSALS:
                    logger.error("broker %d refuses %s: error %d", self.broker_id, _name(request), code)
                    return response
            await asyncio.sleep(RETRY_S)

    def _note_partition_errors(self, request: ControlRequest, response: ControlAnswer) -> None:
        """LeaderAndIsr and StopReplica are answered per partition; what a broker could not do there must be seen."""
        failed = [code for code in _partition_codes(response) if code not in _HARMLESS]
        if failed:
            logger.warning(
                "broker %d: %s failed for %d partitions, errors %s",
                self.broker_id,
                _name(request),
                len(failed),
                sorted(set(failed)),
            )
        if not isinstance(response, LeaderAndIsrResponse):
            return
        offline = _replicas(response, _OFFLINE)
        if offline:
            self._on_offline(self.broker_id, self.broker_epoch, offline)


class ChannelSet:
    """The channels of one controller."""

    def __init__(
        self,
        peer_for: Callable[[int], Peer],
        on_stale: Callable[[], None],
        on_offline: OnOffline = lambda broker_id, broker_epoch, replicas: None,
    ) -> None:
        self._peer_for = peer_for
        self._on_offline = on_offline
        self._on_stale = on_stale
        self._channels: dict[int, BrokerChannel] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"ChannelSet({[*self._channels.values()]})"

    def open(self, broker_id: int, broker_epoch: int) -> None:
        """Nothing happens after ``close_all``: anyone who resigned while it read the brokers tells them nothing."""
        if self._is_closed:
            return
        self.close([broker_id])
        self._channels[broker_id] = BrokerChannel(
            broker_id, broker_epoch, self._peer_for(broker_id), self._on_stale, self._on_offline
        )

    def close(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            channel = self._channels.pop(broker_id, None)
            if channel is not None:
                channel.close()

    def close_all(self) -> None:
        """For good."""
        self._is_closed = True
        self.close(list(self._channels))

    def put(self, broker_id: int, requests: Iterable[ControlRequest]) -> list[BrokerAnswer]:
        """Queue requests for a broker; none if it has no channel."""
        channel = self._channels.get(broker_id)
        return [] if channel is None else [channel.put(request) for request in requests]


def _partition_codes(response: ControlAnswer) -> list[int]:
    """Empty for UpdateMetadata, which is answered as a whole."""
    if isinstance(response, LeaderAndIsrResponse):
        return [error.error_code for topic in response.topics for error in topic.partition_errors]
    if isinstance(response, StopReplicaResponse):
        return [error.error_code for error in response.partition_errors]
    return []


def _obeyed(response: ControlAnswer) -> Obeyed:
    is_all = all(code == ErrorCode.NONE for code in (response.error_code, *_partition_codes(response)))
    if not isinstance(response, LeaderAndIsrResponse):
        return Obeyed(is_all)
    return Obeyed(is_all, _replicas(response, (ErrorCode.NONE,)))


def _replicas(response: LeaderAndIsrResponse, codes: Collection[int]) -> list[tuple[UUID, int]]:
    """Those that were answered with one of these codes."""
    return [
        (topic.topic_id, error.partition_index)
        for topic in response.topics
        if topic.topic_id is not None
        for error in topic.partition_errors
        if error.error_code in codes
    ]


def _name(request: ControlRequest) -> str:
    return type(request.message).__name__


async def all_answered(
    answers: Iterable[asyncio.Future[Any]], timeout_ms: float, is_gone: Callable[[], bool] = lambda: False
) -> bool:
    """Wait until the brokers have answered. False if they did not in time, if the client ``is_gone``, or if we are no
    longer the controller, which would learn of it; the work continues anyway.
    """
    awaited = set(answers)
    waiting = {answer for answer in awaited if not answer.done()}
    if waiting and timeout_ms > 0:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds_of_ms(timeout_ms)
        # One for all: they are not looked through at each look for the client.
        whole = loop.create_task(asyncio.wait(waiting))
        try:
            while not whole.done() and not is_gone() and (left_s := until_s - loop.time()) > 0:
                await asyncio.wait({whole}, timeout=min(left_s, LOOK_S))
        finally:
            whole.cancel()
    return all(answer.done() and not answer.cancelled() for answer in awaited)
