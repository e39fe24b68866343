"""IsrProposals: brings the ISR changes of this broker's partitions to the controller, many in one request.

Owns the queue, one request in flight and the retries (KIP-497). Does not own what an answer means: the
partition settles that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice

from cluster.broker.replicas.host import Proposing
from cluster.isr import IsrAnswer, IsrProposal, PartitionId
from cluster.protocol.errors import ErrorCode
from cluster.replication.isr import IsrOutcome
from cluster.seams.clock import Clock
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.units import seconds_of_ms
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The pause before a proposal is sent again, as in Kafka's AlterPartitionManager.
RETRY_MS = 50
#: How long to wait for the LeaderAndIsr that must settle a change, before it is asked for again.
WAIT_MS = 1000
#: Changes in one request: it must be answered in time also when thousands of partitions are concerned, or all of it is
#: asked again while the controller still works on it.
CHANGES_AT_ONCE = 250
#: No answer is like an error that a later attempt may not meet.
NO_ANSWER = IsrAnswer(ErrorCode.REQUEST_TIMED_OUT)


class IsrProposals:
    """``send`` asks the controller and may raise whatever says that it could not be asked."""

    def __init__(
        self,
        send: Callable[[Mapping[PartitionId, IsrProposal]], Awaitable[Mapping[PartitionId, IsrAnswer]]],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._send = send
        self._clock = clock
        self._loop = loop
        self._waiting: dict[TopicPartition, tuple[Proposing, IsrProposal]] = {}
        self._task: asyncio.Task[None] | None = None
        #: For changes that no one may have taken note of.
        self._timers: dict[TopicPartition, asyncio.TimerHandle] = {}

    def __repr__(self) -> str:
        return f"<IsrProposals {len(self._waiting)} waiting{', asking' if self._task else ''}>"

    def propose(self, partition: Proposing, proposal: IsrProposal) -> None:
        """Ask as soon as the request in flight, if any, is answered. A newer proposal replaces an older one."""
        self._waiting[partition.key] = (partition, proposal)
        if self._task is None:
            self._task = self._loop.create_task(self._run())

    async def close(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for timer in self._timers.values():
            timer.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                asked = {key: self._waiting.pop(key) for key in list(islice(self._waiting, CHANGES_AT_ONCE))}
                if not await self._ask(asked):
                    await asyncio.sleep(seconds_of_ms(RETRY_MS))
        finally:
            self._task = None

    async def _ask(self, asked: dict[TopicPartition, tuple[Proposing, IsrProposal]]) -> bool:
        """One request. False if something of it is to be asked again, and not at once."""
        proposals = {(each.topic_id, each.partition): proposal for each, proposal in asked.values()}
        answers: Mapping[PartitionId, IsrAnswer] = {}
        try:
            answers = await self._send(proposals)
        except Exception as error:  # whatever it was, the proposal stays open until a controller answers it
            halt_if_out_of_memory(error)
            logger.info("the controller could not be asked for %d ISR changes: %r", len(proposals), error)
        is_settled = True
        now_ms = self._clock.monotonic_ms()
        for key, (partition, proposal) in asked.items():
            answer = answers.get((partition.topic_id, partition.partition), NO_ANSWER)
            outcome = partition.isr_answered(proposal, answer, now_ms)
            if outcome is IsrOutcome.RETRY:
                is_settled = False
                self._waiting.setdefault(key, (partition, proposal))
            elif outcome is not IsrOutcome.COMMITTED:
                logger.info("%s-%d: the ISR change to %s: %s", *key, list(proposal.members), outcome.value)
                if outcome is IsrOutcome.WAIT:
                    self._ask_later(partition, proposal)
        return is_settled

    def _ask_later(self, partition: Proposing, proposal: IsrProposal) -> None:
        """Nothing may come of it, if who answered was not the controller anymore."""
        if partition.key in self._timers:
            self._timers[partition.key].cancel()
        self._timers[partition.key] = self._loop.call_later(
            seconds_of_ms(WAIT_MS), self._ask_again, partition, proposal
        )

    def _ask_again(self, partition: Proposing, proposal: IsrProposal) -> None:
        del self._timers[partition.key]
        if partition.is_pending(proposal):
            self.propose(partition, proposal)
