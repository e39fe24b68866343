"""Elections on request (ElectLeaders, KIP-460) and the automatic return to preferred leaders.

Owns one controller's timer for the latter, the writing and the sending. Does not own the choice
(``cluster.controller.leadership``).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.controller.state_writer import CHUNK
from cluster.broker.control.links.channels import BrokerAnswer
from cluster.broker.control.membership.event_queue import Post, Shift
from cluster.broker.pauses import Pauses
from cluster.config.broker import BrokerConfig
from cluster.controller.context import TopicPartition
from cluster.controller.leadership import ElectionType, Refusal, plan_elections, plan_rebalance
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import Change
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ElectLeadersRequest, ElectLeadersResponse

logger = logging.getLogger(__name__)

_Result = ElectLeadersResponse.ReplicaElectionResult

#: After an election of a controller the first look at the balance comes this soon, as in Kafka.
FIRST_LOOK_S = 5.0


@dataclass(slots=True)
class ElectionOutcome:
    """What became of an ElectLeaders request, and the answers of the brokers that are to be waited for.

    ``results`` holds None for a partition that has got another leader. ``left`` are those not examined yet, the first
    last; None before it has begun.
    """

    error_code: ErrorCode = ErrorCode.NONE
    results: dict[TopicPartition, Refusal | None] = field(default_factory=dict)
    answers: list[BrokerAnswer] = field(default_factory=list)
    left: list[TopicPartition] | None = None

    def time_out(self) -> None:
        """The brokers have not all learned of it in time."""
        for topic_partition, refusal in self.results.items():
            if refusal is None:
                self.results[topic_partition] = Refusal(
                    ErrorCode.REQUEST_TIMED_OUT, "The brokers have not all taken it over yet."
                )


class Elections:
    """For one controller. Its methods are called by the queue of control, one at a time."""

    def __init__(self, controller: Controller, properties: BrokerConfig, post: Post) -> None:
        self._controller = controller
        self._context = controller.context
        self._percentage = properties["leader.imbalance.per.broker.percentage"]
        self._interval_s = float(properties["leader.imbalance.check.interval.seconds"])
        self._post = post
        self._timer: asyncio.TimerHandle | None = None
        if properties["auto.leader.rebalance.enable"]:
            self._look_in(FIRST_LOOK_S)

    def __repr__(self) -> str:
        return f"Elections({self._controller!r})"

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def elect(self, request: ElectLeadersRequest, done: ElectionOutcome, shift: Shift) -> bool:
        """Continue with ElectLeaders, of which ``done`` is done; True if that is all. Of a request for all partitions
        those that needed nothing are not told of (KIP-460)."""
        try:
            kind = ElectionType(request.election_type)
        except ValueError:
            done.error_code = ErrorCode.INVALID_REQUEST
            return True
        wants_all = request.topic_partitions is None
        if done.left is None:
            wanted = {topic_partition: None for topic_partition, _, _ in self._context.partitions() if wants_all}
            for topic in request.topic_partitions or ():
                for number in topic.partitions:
                    wanted[TopicPartition(topic.topic, number)] = None
                    await shift.pause()
                await shift.pause()
            done.left = [*reversed(wanted)]
        while done.left:
            some = done.left[: -CHUNK - 1 : -1]
            del done.left[-CHUNK:]
            planned = plan_elections(self._context, kind, some, self._controller.rules.elect_offline)
            changes = [change for change in planned.values() if isinstance(change, Change)]
            if changes:
                done.answers += await self._carry_out(changes)
            for topic_partition, outcome in planned.items():
                needless = isinstance(outcome, Refusal) and outcome.error_code is ErrorCode.ELECTION_NOT_NEEDED
                if not (wants_all and needless):
                    done.results[topic_partition] = None if isinstance(outcome, Change) else outcome
            if await shift.is_over():
                break
        return not done.left

    async def rebalance(self) -> None:
        """One look at the balance (``auto.leader.rebalance.enable``)."""
        changes = plan_rebalance(self._context, self._percentage)
        if changes:
            logger.info("rebalance: %d partitions go back to their preferred leaders", len(changes))
            await self._carry_out(changes)

    async def _carry_out(self, changes: list[Change]) -> list[BrokerAnswer]:
        await self._controller.writer.write(changes)
        outbox = Outbox(self._context)
        outbox.add_changes(changes)
        return self._controller.send(outbox)

    def _look_in(self, delay_s: float) -> None:
        def look() -> None:
            self._post(self.rebalance)
            self._look_in(self._interval_s)

        self._timer = asyncio.get_running_loop().call_later(delay_s, look)


async def elect_leaders_response(outcome: ElectionOutcome, version: int, pause: Pauses) -> ElectLeadersResponse:
    """In version 0, which has no error of its own, each partition tells it."""
    topics: dict[str, list[_Result.PartitionResult]] = {}
    for (topic, partition), refusal in outcome.results.items():
        await pause()
        topics.setdefault(topic, []).append(
            _Result.PartitionResult(
                partition_id=partition,
                error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
                error_message=None if refusal is None else refusal.message,
            )
        )
    return ElectLeadersResponse(
        version=version,
        error_code=outcome.error_code,
        replica_election_results=[_Result(topic=topic, partition_result=results) for topic, results in topics.items()],
    )


def elections_refused(request: ElectLeadersRequest) -> ElectionOutcome:
    """ElectLeaders at a broker that is not the controller."""
    refusal = Refusal(ErrorCode.NOT_CONTROLLER, None)
    asked = [TopicPartition(t.topic, number) for t in request.topic_partitions or () for number in t.partitions]
    return ElectionOutcome(ErrorCode.NOT_CONTROLLER, dict.fromkeys(asked, refusal))
