"""What a commit names, and its answer: of OffsetCommit and TxnOffsetCommit alike."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from cluster.broker.handlers.committed_offsets import answered, asked_offsets
from cluster.broker.pauses import Pauses, Shares
from cluster.coordinator.group.requests import OffsetToCommit
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import OffsetCommitRequest, TxnOffsetCommitRequest


def test_each_partition_once_and_those_that_exist() -> None:
    """The last word counts, in the place of the first; a topic without partitions is answered without any."""
    metadata: Any = SimpleNamespace(partition=lambda topic, number: None if number == 9 else (topic, number))

    async def check(topic_class: Any, partition_class: Any) -> None:
        pause = Pauses(Shares(lambda: 0))

        def named(name: str, *offsets: tuple[int, int, str | None]) -> Any:
            partitions = [
                partition_class(partition_index=number, committed_offset=offset, committed_metadata=text)
                for number, offset, text in offsets
            ]
            return topic_class(name=name, partitions=partitions)

        topics = [named("b", (1, 5, "x"), (9, 5, "")), named("a"), named("b", (2, 6, None), (1, 7, None))]
        found = await asked_offsets(topics, metadata, pause, 1000)
        assert found.topics == {"b": [1, 9, 2], "a": []}
        assert found.errors == {("b", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert found.offsets == {("b", 1): OffsetToCommit(7, "", -1, 1000), ("b", 2): OffsetToCommit(6, "", -1, 1000)}
        errors = found.errors | dict.fromkeys(found.offsets, ErrorCode.NONE)
        told = await answered(found.topics, errors, pause, lambda *topic: topic, lambda *partition: partition)
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert told == [("b", [(1, ErrorCode.NONE), (9, absent), (2, ErrorCode.NONE)]), ("a", [])]

    for topic_class in (
        OffsetCommitRequest.OffsetCommitRequestTopic,
        TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic,
    ):
        partition_class = getattr(topic_class, topic_class.__name__.replace("Topic", "Partition"))
        asyncio.run(check(topic_class, partition_class))
