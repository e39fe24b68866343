"""ISR proposals: one request at a time, many in it, asked again until somebody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from cluster.broker.control.links.controller_client import ControllerUnavailable
from cluster.broker.replicas.isr_proposals import CHANGES_AT_ONCE, WAIT_MS, IsrProposals
from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrAnswer, IsrProposal, PartitionId
from cluster.protocol.errors import ErrorCode
from cluster.replication.isr import IsrOutcome
from tests.support.virtual_time import LoopClock, run


class FakePartition:
    """Notes the answers; asks again after what the real one retries."""

    topic_id = UUID(int=1)

    def __init__(self, number: int) -> None:
        self.topic, self.partition = "t", number
        self.key = ("t", number)
        self.answers: list[IsrAnswer] = []
        self.pending: IsrProposal | None = PROPOSAL

    def isr_answered(self, _proposal: IsrProposal, answer: IsrAnswer, _now_ms: int) -> IsrOutcome:
        self.answers.append(answer)
        if answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return IsrOutcome.WAIT
        return IsrOutcome.COMMITTED if answer.error_code is ErrorCode.NONE else IsrOutcome.RETRY

    def is_pending(self, proposal: IsrProposal) -> bool:
        return self.pending is proposal


PROPOSAL = IsrProposal(3, 5, ((1, UNKNOWN_BROKER_EPOCH), (2, 77)))

#: What is sent, and what comes back.
Asked = Mapping[PartitionId, IsrProposal]
Answers = dict[PartitionId, IsrAnswer]


def all_of(asked: Asked, answer: IsrAnswer) -> Answers:
    return dict.fromkeys(asked, answer)


def numbers(asked: Asked) -> list[int]:
    return [number for _, number in asked]


DONE = IsrAnswer(ErrorCode.NONE, 3, (1, 2), 6)


def test_a_proposal_is_asked_until_it_is_answered() -> None:
    """No controller, an error, an answer without it: each time once more, after a pause."""

    async def main() -> None:
        asked: list[list[int]] = []
        partitions = [FakePartition(number) for number in range(2)]

        async def send(changes: Asked) -> Answers:
            asked.append(numbers(changes))
            assert changes[FakePartition.topic_id, 0] is PROPOSAL
            await asyncio.sleep(0.01)
            if len(asked) == 1:
                raise ControllerUnavailable("there is none")
            if len(asked) == 2:
                return {(FakePartition.topic_id, 0): IsrAnswer(ErrorCode.NOT_CONTROLLER)}
            return all_of(changes, DONE)

        proposals = IsrProposals(send, LoopClock(), asyncio.get_running_loop())
        for partition in partitions:
            proposals.propose(partition, PROPOSAL)
        await asyncio.sleep(1)
        assert asked == [[0, 1], [0, 1], [0, 1]]
        assert [[answer.error_code for answer in partition.answers] for partition in partitions] == [
            [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.NONE],
            [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE],
        ]
        assert repr(proposals) == "<IsrProposals 0 waiting>"

    run(main())


def test_what_comes_meanwhile_goes_in_the_next_request() -> None:
    """One request in flight; a newer proposal of the same partition replaces the one that waits."""

    async def main() -> None:
        asked: list[list[tuple[int, int]]] = []
        partition = FakePartition(0)

        async def send(changes: Asked) -> Answers:
            asked.append([(number, proposal.partition_epoch) for (_, number), proposal in changes.items()])
            await asyncio.sleep(0.1)
            return all_of(changes, IsrAnswer(ErrorCode.NONE))

        proposals = IsrProposals(send, LoopClock(), asyncio.get_running_loop())
        proposals.propose(partition, PROPOSAL)
        await asyncio.sleep(0.05)
        for epoch in (6, 7):
            proposals.propose(partition, IsrProposal(3, epoch, ((1, 11),)))
        await asyncio.sleep(1)
        assert asked == [[(0, 5)], [(0, 7)]]
        await proposals.close()

    run(main())


def test_what_a_deposed_controller_answered_is_asked_again() -> None:
    """It knows nothing of newer partitions, and nothing follows its answer. What was settled meanwhile is not asked."""

    async def main() -> None:
        asked: list[tuple[float, list[int]]] = []
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        told, forgotten = FakePartition(0), FakePartition(1)

        async def send(changes: Asked) -> Answers:
            asked.append((round(loop.time() - began_s, 3), numbers(changes)))
            code = ErrorCode.NONE if len(asked) > 2 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return all_of(changes, replace(DONE, error_code=code))

        proposals = IsrProposals(send, LoopClock(), loop)
        for partition in (told, forgotten):
            proposals.propose(partition, PROPOSAL)
        await asyncio.sleep(0.5)
        told.pending = None
        await asyncio.sleep(5)
        wait_s = WAIT_MS / 1000
        assert asked == [(0.0, [0, 1]), (wait_s, [1]), (2 * wait_s, [1])]

    run(main())


def test_nothing_is_asked_again_after_the_end() -> None:
    """A broker that stops leaves no timer that wakes it."""

    async def main() -> None:
        asked = 0

        async def send(changes: Asked) -> Answers:
            nonlocal asked
            asked += 1
            return all_of(changes, IsrAnswer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

        proposals = IsrProposals(send, LoopClock(), asyncio.get_running_loop())
        proposals.propose(FakePartition(0), PROPOSAL)
        await asyncio.sleep(0.5)
        await proposals.close()
        await asyncio.sleep(5)
        assert asked == 1

    run(main())


def test_a_request_is_small_enough_to_be_answered_in_time() -> None:
    """Thousands of changes go in several requests, and what is asked again does not hold up the others."""

    async def main() -> None:
        asked: list[list[int]] = []

        async def send(changes: Asked) -> Answers:
            asked.append(numbers(changes))
            if len(asked) == 1:
                raise ControllerUnavailable("it does not answer")
            return all_of(changes, DONE)

        proposals = IsrProposals(send, LoopClock(), asyncio.get_running_loop())
        for number in range(2 * CHANGES_AT_ONCE + 1):
            proposals.propose(FakePartition(number), PROPOSAL)  # type: ignore[arg-type]
        await asyncio.sleep(1)
        first, second = list(range(CHANGES_AT_ONCE)), list(range(CHANGES_AT_ONCE, 2 * CHANGES_AT_ONCE))
        assert asked == [first, second, [2 * CHANGES_AT_ONCE, *first[:-1]], first[-1:]]

    run(main())
