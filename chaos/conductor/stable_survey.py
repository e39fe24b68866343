"""Asks every broker for last stable offsets and high watermarks. Owns the requests and how the answers are merged.

A broker answers for the partitions that it believes it leads. If several do, the highest leader epoch wins. Does not
own what the offsets show (``chaos.conductor.stable_offsets``).
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
    """The offsets that a leader reports for a partition."""

    leader_epoch: int
    last_stable: int
    high_watermark: int


async def stable_offsets(
    addresses: Iterable[str], places: Sequence[TopicPartition], transport: Transport, timeout_ms: int
) -> dict[TopicPartition, StableOffsets]:
    """The offsets of these partitions. One whose leader does not answer in time is absent.

    ``addresses`` are the ``host:port`` of control listeners; ``timeout_ms`` is for each request.
    """

    async def latest(address: str, isolation_level: int) -> dict[TopicPartition, ListedOffset]:
        question = list_offsets_request(dict.fromkeys(places, LATEST_TIMESTAMP), isolation_level=isolation_level)
        answer = await ask(address, transport, timeout_ms, question)
        told = {} if answer is None else listed_offsets(answer)
        return {place: listed for place, listed in told.items() if isinstance(listed, ListedOffset)}

    async def known(address: str) -> dict[TopicPartition, StableOffsets]:
        # the high watermark first: if both advance in between, the last stable offset does not seem to lag
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
