"""The sender's core on a bench: a test gives it events and times, and looks at the actions that it asks for.

Owns the glue that a thread would be. Does not own any rule: those are in ``test_sender*.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.actions import Action, AskProducerId, PartitionResult, SendProduce
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.invariants import validate_sender
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.sender_settings import SenderSettings
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import Leaders, a_view

A = TypeVar("A")

REQUEST_MS = 30
DELIVERY_MS = 100
BACKOFF_MS = 10


class Bench:
    """A core with one thread's worth of glue: times are given, actions are kept."""

    def __init__(
        self, leaders: Leaders, *, acks: int = -1, max_in_flight: int = 5, retries: int = 9, is_idempotent: bool = False
    ) -> None:
        self.accumulator = RecordAccumulator(
            batch_size=1_000, linger_ms=0, delivery_timeout_ms=DELIVERY_MS, is_exhausted=lambda: False
        )
        self.identity = ProducerIdentity(max_in_flight) if is_idempotent else None
        settings = SenderSettings(acks, max_in_flight, 10_000, REQUEST_MS, DELIVERY_MS, retries)
        self.core = SenderCore(settings, self.accumulator, self.identity, lambda failures: BACKOFF_MS)
        self.core.metadata(a_view(leaders))
        self.now_ms = 0

    def put(self, *batches: ProducerBatch) -> None:
        for batch in batches:
            self.accumulator.add(batch)

    def tick(self, now_ms: int | None = None) -> list[Action]:
        self.now_ms = self.now_ms if now_ms is None else now_ms
        actions = self.core.tick(self.now_ms)
        validate_sender(self.core)
        return actions

    def start(self, *nodes: int) -> None:
        """Connected, and with producer id 7."""
        for node in nodes:
            self.core.connected(node)
        if self.identity is not None:
            assert some(AskProducerId, self.tick()) == [AskProducerId(nodes[0])]
            self.core.producer_id(self.now_ms, ErrorCode.NONE, 7, 0)

    def answer(self, request: SendProduce, *codes: ErrorCode, base_offset: int = 40, now_ms: int | None = None) -> None:
        """One code for each batch of the request, in order."""
        self.now_ms = self.now_ms if now_ms is None else now_ms
        results = {
            (batch.topic, batch.partition): PartitionResult(code, base_offset, 5, error_message="so it is")
            for batch, code in zip(request.batches, codes, strict=True)
        }
        self.core.produced(request.node, request.request_id, results, self.now_ms)


def some(kind: type[A], actions: Sequence[Action]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]
