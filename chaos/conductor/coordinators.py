"""Finds out which transactional ids and groups exist and which broker coordinates each, by asking every broker.

Owns the requests and how the answers are merged. Does not own which coordinator a fault hits (``chaos.faults.steps``).
Uses the control listeners, which have no proxy in front: a broker that is cut off also answers, with what it believes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from chaos.conductor.broker_question import ask
from chaos.faults.breakable import ProducerSeen, SeenMember
from chaos.faults.under_test import CoordinatorOf
from cluster.client.coordinator_lookup import GROUP, TRANSACTION, find_coordinator_request, found_coordinator
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
    Request,
)
from cluster.seams.transport import Transport

_Answer = TypeVar("_Answer")

_KEY_TYPES: Mapping[CoordinatorOf, int] = {"transaction": TRANSACTION, "group": GROUP}
#: States of transactional ids and groups that are not in use: no client would notice that their coordinator is gone.
_DEAD = "Dead"
_IDLE = frozenset(("Empty", _DEAD))


class CoordinatorSurvey:
    """Asks every broker the same question, at the same time. A broker that does not answer in time is left out.

    ``control`` maps broker ids to the ``host:port`` of their control listeners. ``timeout_ms`` is for each request.
    """

    def __init__(self, control: Mapping[int, str], transport: Transport, timeout_ms: int) -> None:
        self._control = control
        self._transport = transport
        self._timeout_ms = timeout_ms

    async def in_use(self, kind: CoordinatorOf) -> dict[str, int]:
        """The transactional ids with a transaction, or the groups with members: sorted, each with its coordinator."""
        ask = self._transactions if kind == "transaction" else self._groups
        found: dict[str, int] = {}
        for broker_id, keys in zip(self._control, await asyncio.gather(*map(ask, self._control)), strict=True):
            found |= dict.fromkeys(keys, broker_id)
        return dict(sorted(found.items()))

    async def find(self, kind: CoordinatorOf, key: str) -> int | None:
        """The id of the coordinator that most answers name; None if none names one.

        To be called only for a key that is in use: otherwise the request would create the internal topic.
        """

        async def ask(broker_id: int) -> int | None:
            answer = await self._ask(broker_id, find_coordinator_request(key, _KEY_TYPES[kind]))
            broker = None if answer is None else found_coordinator(answer).broker
            return None if broker is None else broker.broker_id

        votes = Counter(each for each in await asyncio.gather(*map(ask, self._control)) if each is not None)
        return votes.most_common(1)[0][0] if votes else None

    async def producers(self) -> dict[str, ProducerSeen]:
        """Every transactional id, sorted, with what its coordinator knows about its producer."""
        found: dict[str, ProducerSeen] = {}
        for known in await asyncio.gather(*map(self._producers, self._control)):
            found |= known
        return dict(sorted(found.items()))

    async def members(self, group: str) -> list[SeenMember] | None:
        """The members of a group, from a broker that knows the group; None if no broker does."""
        for known in await asyncio.gather(*(self._members(broker_id, group) for broker_id in self._control)):
            if known is not None:
                return known
        return None

    async def _producers(self, broker_id: int) -> dict[str, ProducerSeen]:
        everything = ListTransactionsRequest(state_filters=[], producer_id_filters=[], duration_filter=-1)
        listed = await self._ask(broker_id, everything)
        names = [] if listed is None else [each.transactional_id for each in listed.transaction_states]
        if not names:
            return {}
        answer = await self._ask(broker_id, DescribeTransactionsRequest(transactional_ids=names))
        return {
            each.transactional_id: ProducerSeen(each.producer_id, each.producer_epoch, each.transaction_timeout_ms)
            for each in (() if answer is None else answer.transaction_states)
            if each.error_code == ErrorCode.NONE
        }

    async def _members(self, broker_id: int, group: str) -> list[SeenMember] | None:
        question = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
        answer = await self._ask(broker_id, question)
        known = [] if answer is None else [each for each in answer.groups if each.error_code == ErrorCode.NONE]
        if not known or known[0].group_state == _DEAD:
            return None
        return [SeenMember(each.member_id, each.client_id, each.group_instance_id) for each in known[0].members]

    async def _transactions(self, broker_id: int) -> list[str]:
        answer = await self._ask(
            broker_id, ListTransactionsRequest(state_filters=[], producer_id_filters=[], duration_filter=-1)
        )
        if answer is None or answer.error_code != ErrorCode.NONE:
            return []
        return [each.transactional_id for each in answer.transaction_states if each.transaction_state not in _IDLE]

    async def _groups(self, broker_id: int) -> list[str]:
        answer = await self._ask(broker_id, ListGroupsRequest(states_filter=[], types_filter=[]))
        if answer is None or answer.error_code != ErrorCode.NONE:
            return []
        return [each.group_id for each in answer.groups if (each.group_state or "") not in _IDLE]

    async def _ask(self, broker_id: int, message: Request[_Answer]) -> _Answer | None:
        return await ask(self._control[broker_id], self._transport, self._timeout_ms, message)
