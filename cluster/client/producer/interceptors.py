"""What a program puts between itself and the producer: interceptors, and the record that they are shown.

Owns the order of their calls, and that one that raises does no harm (Kafka's ProducerInterceptors). Does not
own serializing nor sending.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from cluster.client.producer.delivery import ProduceError, RecordMetadata
from cluster.client.producer.futures import OnDelivery
from cluster.protocol.records import Header

logger = logging.getLogger(__name__)


class ProducerRecord(NamedTuple):
    """A record as ``Producer.send`` was given it, before serialization. ``timestamp_ms`` None: the time of sending."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    headers: Sequence[Header] = ()
    timestamp_ms: int | None = None


class Interceptors:
    """Objects with any of ``on_send(record) -> record``, ``on_acknowledgement(metadata, error)`` and ``close()``.

    ``on_send`` runs in the thread that sends, ``on_acknowledgement`` in the producer's own, before the callback of the
    record. What they raise is logged.
    """

    def __init__(self, interceptors: Sequence[object]) -> None:
        self._interceptors = tuple(interceptors)

    def __repr__(self) -> str:
        return f"Interceptors({', '.join(type(each).__name__ for each in self._interceptors)})"

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record that is sent instead; one that raises is left out, and the next sees what came before it."""
        for each in self._interceptors:
            method = getattr(each, "on_send", None)
            if method is None:
                continue
            try:
                record = method(record)
            except Exception:
                logger.exception("interceptor %r failed before a record for %s was sent", each, record.topic)
        return record

    def around(self, on_delivery: OnDelivery | None) -> OnDelivery:
        """A callback that tells the interceptors first."""

        def told(error: ProduceError | None, metadata: RecordMetadata) -> None:
            self._acknowledged(metadata, error)
            if on_delivery is not None:
                on_delivery(error, metadata)

        return told

    def close(self) -> None:
        """The producer has ended."""
        for each in self._interceptors:
            method = getattr(each, "close", None)
            if method is None:
                continue
            try:
                method()
            except Exception:
                logger.exception("interceptor %r failed to close", each)

    def _acknowledged(self, metadata: RecordMetadata, error: ProduceError | None) -> None:
        for each in self._interceptors:
            method = getattr(each, "on_acknowledgement", None)
            if method is None:
                continue
            try:
                method(metadata, error)
            except Exception:
                logger.exception("interceptor %r failed to take a record's outcome", each)
