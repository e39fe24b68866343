"""The late producer: the last record of a transaction is sent behind its end, and what it is told of that counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import pytest

from cluster.client.errors import AdminError
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from loadgen.clients.base import ClientCallbacks, Failure, ignore
from loadgen.clients.late import LateProducer
from loadgen.clients.single_requests import SingleRequests
from loadgen.clients.transactional import Remedy, TransactionRefusal

Place = tuple[str, int]


class Cluster:
    """What is asked of it, in order, and what it says to appends after the first ``well`` ones."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusals: dict[int, Exception] = {}
        self.appended = 0

    async def initialize(self, transaction_timeout_ms: int) -> tuple[int, int]:
        self.asked.append("initialize")
        return 7, 1

    async def add(self, identity: tuple[int, int], partitions: Iterable[Place]) -> None:
        self.asked.append(f"add {sorted(partition for _, partition in partitions)}")

    async def end(self, identity: tuple[int, int], *, is_commit: bool) -> None:
        self.asked.append("commit" if is_commit else "abort")

    async def until_complete(self) -> None:
        self.asked.append("complete")

    async def append(self, place: Place, batch: bytes) -> int:
        header = parse_header(memoryview(batch))
        self.asked.append(f"{place[1]}:{header.base_sequence}")
        self.appended += 1
        if (refusal := self.refusals.get(self.appended)) is not None:
            raise refusal
        return 100 + self.appended

    async def close(self) -> None:
        self.asked.append("close")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def told() -> list[tuple[int, str | None, int | None]]:
    return []


@pytest.fixture
def producer(cluster: Cluster, told: list[tuple[int, str | None, int | None]]) -> Iterator[LateProducer]:
    def delivered(sequence: int, failure: Failure | None, offset: int | None) -> None:
        told.append((sequence, None if failure is None else failure.text, offset))

    made = LateProducer(
        cast(SingleRequests, cluster), ClientCallbacks(delivered, ignore, lambda *_: None), ManualClock()
    )
    made.initialize()
    yield made
    made.dispose(1.0)


def produce(producer: LateProducer, *sequences: int) -> None:
    """To partitions 0 and 1 in turn."""
    for sequence in sequences:
        producer.produce("t", sequence % 2, None, b"value", sequence)


def test_the_last_record_is_sent_when_all_markers_are_written(
    cluster: Cluster, producer: LateProducer, told: list[object]
) -> None:
    """What is refused takes no sequence: the next transaction's record in that partition has it."""
    cluster.refusals[3] = AdminError(ErrorCode.INVALID_TXN_STATE, "late")
    produce(producer, 0, 2, 1)
    producer.abort()
    produce(producer, 3, 4)
    producer.commit()
    producer.poll()
    assert cluster.asked[1:] == [
        "add [0, 1]", "0:0", "0:1", "abort", "complete", "1:0",
        "add [0, 1]", "1:0", "commit", "complete", "0:2",
    ]  # fmt: skip
    assert told == [
        (0, None, 101), (2, None, 102), (1, "INVALID_TXN_STATE: late", -1), (3, None, 104), (4, None, 105),
    ]  # fmt: skip


def test_what_is_taken_late_has_its_sequence(cluster: Cluster, producer: LateProducer) -> None:
    """A broker that takes it expects the one behind it."""
    produce(producer, 0, 2)
    producer.abort()
    produce(producer, 4, 6)
    producer.commit()
    assert [each for each in cluster.asked if ":" in each] == ["0:0", "0:1", "0:2", "0:3"]


@pytest.mark.parametrize("refused", [1, 2])
def test_after_a_doubt_it_is_replaced(
    cluster: Cluster, producer: LateProducer, told: list[tuple[int, str | None, int | None]], refused: int
) -> None:
    """No one knows which sequence comes next; whatever it still had has an unknown outcome."""
    cluster.refusals[refused] = TimeoutError("no answer")
    produce(producer, 0, 1)
    with pytest.raises(TransactionRefusal) as refusal:
        producer.commit()
    assert refusal.value.remedy is Remedy.REPLACE and not refusal.value.is_certain
    producer.poll()
    assert [sequence for sequence, _, _ in told] == [0, 1]
    assert [text for _, text, _ in told][refused - 1 :] == ["no answer"] * (3 - refused)
