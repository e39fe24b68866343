"""GroupAnswers: thousands of members are answered in the order of the decisions, few in a turn of the loop."""

from __future__ import annotations

import asyncio
from typing import Any

from cluster.broker.groups.group_answers import ANSWERS_AT_ONCE, GroupAnswers
from cluster.coordinator.group.decisions import Answered
from tests.support.virtual_time import run

MEMBERS = 10 * ANSWERS_AT_ONCE


def waiters(count: int) -> list[asyncio.Future[Any]]:
    loop = asyncio.get_running_loop()
    return [loop.create_future() for _ in range(count)]


def given(waiting: list[asyncio.Future[Any]]) -> int:
    return sum(each.done() for each in waiting)


def test_few_answers_leave_in_a_turn() -> None:
    """In order, and whoever comes later is behind them."""

    async def check() -> None:
        answers, waiting, order = GroupAnswers(asyncio.get_running_loop()), waiters(MEMBERS), []
        for number, each in enumerate(waiting):
            each.add_done_callback(lambda _done, number=number: order.append(number))
        answers.add(Answered(each, None) for each in waiting[:-1])
        answers.add([Answered(waiting[-1], "last")])
        for turn in range(1, 11):
            assert given(waiting) == turn * ANSWERS_AT_ONCE
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (order, waiting[-1].result()) == (list(range(MEMBERS)), "last")

    run(check())


def test_one_who_asks_is_answered_at_once() -> None:
    """However many others wait: its own request is being worked on."""

    async def check() -> None:
        answers, waiting = GroupAnswers(asyncio.get_running_loop()), waiters(MEMBERS)
        (asking,) = waiters(1)
        answers.add((Answered(each, None) for each in [*waiting, asking]), asking)
        assert (asking.done(), given(waiting)) == (True, ANSWERS_AT_ONCE)

    run(check())


def test_in_the_end_all_are_answered() -> None:
    """Before the broker closes its connections; one that gave up is passed over."""

    async def check() -> None:
        answers, waiting = GroupAnswers(asyncio.get_running_loop()), waiters(MEMBERS)
        waiting[-1].cancel()
        answers.add(Answered(each, None) for each in waiting)
        answers.close()
        assert given(waiting) == MEMBERS

    run(check())
