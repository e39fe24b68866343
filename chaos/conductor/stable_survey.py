"""Where the last stable offsets and high watermarks are, asked of every broker by itself. Owns the asking.

A broker answers for what it believes it leads; the one with the highest leader epoch is believed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chaos.conductor.broker_question import ask
from cluster.client.offset_listing import LATEST_TIMESTAMP, ListedOffset, list_offsets_request, listed_offsets
from cluster.seams.transport import Transport
from cluster.topic_partition import TopicPartition


class StableOffsets(NamedTuple):
    """What a leader says about a partition."""

    leader_epoch: int
    last_stable: int
    high_watermark: int


async def stable_offsets(
    addresses: Iterable[str], places: Sequence[TopicPartition], transport: Transport, timeout_ms: int
) -> dict[TopicPartition, StableOffsets]:
    """Of these partitions, as far as anyone leads them and answers in time. ``addresses``: of control listeners."""

    async def latest(address: str, isolation_level: int) -> dict[TopicPartition, ListedOffset]:
        question = list_offsets_request(dict.fromkeys(places, LATEST_TIMESTAMP), isolation_level=isolation_level)
        answer = await ask(address, transport, timeout_ms, question)
        told = {} if answer is None else listed_offsets(answer)
        return {place: listed for place, listed in told.items() if isinstance(listed, ListedOffset)}

    async def known(address: str) -> dict[TopicPartition, StableOffsets]:
        # in this order: one that advances in between does not look as if it were behind
        whole = await latest(address, 0)
        stable = await latest(address, 1) if whole else {}
        return {
            place: StableOffsets(listed.leader_epoch, stable[place].offset, listed.offset)
            for place, listed in whole.items()
            if place in stable
        }

    found: dict[TopicPartition, StableOffsets] = {}
    for answer in await asyncio.gather(*map(known, addresses)):
        for place, seen in answer.items():
            found[place] = max(seen, found.get(place, seen))
    return found
