"""Elections on request (ElectLeaders, KIP-460) and the automatic return to preferred leaders.

Owns one controller's timer for the latter, the writing and the sending. Does not own the choice
(``cluster.controller.leadership``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cluster.broker.control.controller.controller import Controller
from cluster.broker.control.controller.state_writer import CHUNK
from cluster.broker.control.links.channels import BrokerAnswer
from cluster.broker.control.membership.event_queue import Post, Shift
from cluster.config.broker import BrokerConfig
from cluster.controller.context import TopicPartition
from cluster.controller.leadership import ElectionType, Refusal, plan_elections, plan_rebalance
from cluster.controller.outbox import Outbox
from cluster.controller.partitions import Change
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: After an election of a controller the first look at the balance comes this soon, as in Kafka.
FIRST_LOOK_S = 5.0


@dataclass(slots=True)
class ElectionOutcome:
    """What became of the elections of one request, and the answers of the brokers that are to be waited for.

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

    async def elect(
        self, election_type: int, wanted: Sequence[TopicPartition] | None, done: ElectionOutcome, shift: Shift
    ) -> bool:
        """Continue with the elections in the partitions that are ``wanted``, each named once, of which ``done`` are
        done; True if those are all. If all are wanted (None), those that needed nothing are not told of (KIP-460)."""
        try:
            kind = ElectionType(election_type)
        except ValueError:
            done.error_code = ErrorCode.INVALID_REQUEST
            return True
        wants_all = wanted is None
        if done.left is None:
            asked = (tp for tp, _, _ in self._context.partitions()) if wanted is None else wanted
            done.left = [*asked][::-1]
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


def elections_refused(wanted: Iterable[TopicPartition]) -> ElectionOutcome:
    """At a broker that is not the controller."""
    refusal = Refusal(ErrorCode.NOT_CONTROLLER, None)
    return ElectionOutcome(ErrorCode.NOT_CONTROLLER, dict.fromkeys(wanted, refusal))
