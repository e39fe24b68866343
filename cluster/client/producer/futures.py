"""What became of records: one outcome per batch, one light future per record.

Owns that a batch has one outcome, ever, that anyone who waits for it is woken, and that callbacks run in the order of
the records (Kafka's FutureRecordMetadata, ProduceRequestResult and the last third of ProducerBatch). Does not own
records or their bytes, nor decides on an outcome.

Waiting works from any thread, and under gevent: there are threading's primitives and no others, and they are made only
when a caller waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cluster.client.producer.delivery import ProduceError, RecordMetadata

logger = logging.getLogger(__name__)

#: Told of a record's outcome: (error, metadata). With an error, the metadata holds topic and partition alone.
OnDelivery = Callable[[ProduceError | None, RecordMetadata], object]

#: Held for a few assignments: an outcome, a listener and a division see each other wholly or not at all.
_LOCK = threading.Lock()

#: As ``RecordMetadata._make``, without its two calls more for every record.
_new_metadata: Callable[[tuple[str, int, int, int, int, int]], RecordMetadata] = partial(tuple.__new__, RecordMetadata)


class BatchDelivery:
    """The outcome of one batch, and who wants to know it. Safe from any thread.

    But for ``wanted``, whom to tell about which record's outcome: who appends to the batch appends there, in record
    order, before there is an outcome. (A method would cost as much as all the rest of it.)
    """

    __slots__ = (
        "_base_offset",
        "_conditions",
        "_error",
        "_is_finished",
        "_is_told",
        "_listeners",
        "_log_append_time_ms",
        "_record_errors",
        "_successors",
        "partition",
        "topic",
        "wanted",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self._is_finished = False
        self._is_told = False
        self._base_offset = -1
        self._log_append_time_ms = -1
        self._error: ProduceError | None = None
        self._record_errors: Mapping[int, ProduceError] = {}
        # At most one, made when a caller waits; the parts of a divided batch share the list with the whole.
        self._conditions: list[threading.Condition] = []
        self.wanted: list[tuple[RecordFuture, OnDelivery]] = []
        self._listeners: list[tuple[RecordFuture, Callable[[RecordFuture], object]]] = []
        self._successors: tuple[tuple[int, BatchDelivery], ...] = ()

    def __repr__(self) -> str:
        state = "divided" if self._successors else "finished" if self._is_finished else "pending"
        return f"BatchDelivery({self.topic}-{self.partition}, {state})"

    @property
    def is_finished(self) -> bool:
        """Whether the outcome is known. Callbacks may still be running."""
        return self._is_finished

    def complete(self, base_offset: int, log_append_time_ms: int = -1) -> bool:
        """All records were written from ``base_offset`` on (-1: not known). False if there was an outcome before."""
        return self._finish(base_offset, log_append_time_ms, None, {})

    def fail(self, error: ProduceError, record_errors: Mapping[int, ProduceError] | None = None) -> bool:
        """No record was written; ``record_errors`` holds, by index, what is wrong with single ones (KIP-467).

        False if there was an outcome before.
        """
        return self._finish(-1, -1, error, record_errors or {})

    def divide(self, successors: Sequence[tuple[int, BatchDelivery]]) -> bool:
        """Leave the outcome to ``successors``, each with the index of its first record here; who waits, waits on.

        False if there was an outcome before.
        """
        with _LOCK:
            if self._is_finished or self._successors:
                return False
            wanted, self.wanted = self.wanted, []
            listeners, self._listeners = self._listeners, []
            self._successors = tuple(successors)
            for _first, successor in successors:
                successor._conditions = self._conditions
            for future, on_delivery in wanted:
                future.place()[0].wanted.append((future, on_delivery))
            for future, listener in listeners:
                future.place()[0]._listeners.append((future, listener))
            return True

    def wait_until_told(self, timeout_s: float | None = None) -> bool:
        """Wait until all callbacks have run, those of a divided batch's parts too. False if time ran out."""
        with _LOCK:
            condition = None if self._told() else self._condition()
        return condition is None or _wait(condition, self._told, timeout_s)

    def place_of(self, index: int) -> tuple[BatchDelivery, int]:
        """Where the outcome of the record at ``index`` is now, and its index there."""
        delivery = self
        while delivery._successors:
            first, successor = next(each for each in reversed(delivery._successors) if each[0] <= index)
            delivery, index = successor, index - first
        return delivery, index

    def outcome(self, index: int) -> tuple[int, int, ProduceError | None]:
        """(offset, the broker's timestamp, error) of the record at ``index``, of a batch that is finished."""
        if self._error is not None:
            return -1, -1, self._record_errors.get(index, self._error)
        return -1 if self._base_offset < 0 else self._base_offset + index, self._log_append_time_ms, None

    def _told(self) -> bool:
        if self._successors:
            return all(successor._told() for _first, successor in self._successors)
        return self._is_told

    def _condition(self) -> threading.Condition:
        # Under _LOCK.
        if not self._conditions:
            self._conditions.append(threading.Condition())
        return self._conditions[0]

    def _finish(
        self,
        base_offset: int,
        log_append_time_ms: int,
        error: ProduceError | None,
        record_errors: Mapping[int, ProduceError],
    ) -> bool:
        with _LOCK:
            if self._is_finished or self._successors:
                return False
            self._base_offset = base_offset
            self._log_append_time_ms = log_append_time_ms
            self._error = error
            self._record_errors = record_errors
            self._is_finished = True
            wanted, self.wanted = self.wanted, []
            listeners, self._listeners = self._listeners, []
        try:
            if listeners or error is not None:
                self._tell(wanted, listeners)
            else:
                self._tell_offsets(wanted)
        finally:
            with _LOCK:
                self._is_told = True
                conditions = tuple(self._conditions)
            for condition in conditions:
                with condition:
                    condition.notify_all()
        return True

    def _tell_offsets(self, wanted: list[tuple[RecordFuture, OnDelivery]]) -> None:
        # As _tell, for nearly every batch, at a third of the cost.
        topic, partition, log_append_time_ms = self.topic, self.partition, self._log_append_time_ms
        new_tuple = tuple.__new__
        for future, on_delivery in wanted:
            delivery, index, timestamp_ms, key_bytes, value_bytes = future
            if delivery is not self:
                index = delivery.place_of(index)[1]
            offset = -1 if self._base_offset < 0 else self._base_offset + index
            if log_append_time_ms >= 0:
                timestamp_ms = log_append_time_ms
            metadata = new_tuple(RecordMetadata, (topic, partition, offset, timestamp_ms, key_bytes, value_bytes))
            try:
                on_delivery(None, metadata)
            except Exception:
                self._log_failure()

    def _tell(
        self,
        wanted: list[tuple[RecordFuture, OnDelivery]],
        listeners: list[tuple[RecordFuture, Callable[[RecordFuture], object]]],
    ) -> None:
        calls = [(future[1], partial(on_delivery, *future.outcome())) for future, on_delivery in wanted]
        calls += [(future[1], partial(listener, future)) for future, listener in listeners]
        for _index, call in sorted(calls, key=lambda each: each[0]):
            self._call(call)

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception:
            self._log_failure()

    def _log_failure(self) -> None:
        logger.exception("a callback for a record of %s-%d failed", self.topic, self.partition)

    def listen(self, future: RecordFuture, listener: Callable[[RecordFuture], object]) -> None:
        """Call ``listener`` with ``future`` when its outcome is known: at once, if it is."""
        with _LOCK:
            delivery, _index = future.place()
            if not delivery._is_finished:
                delivery._listeners.append((future, listener))
                return
        self._call(partial(listener, future))

    def wait_for(self, future: RecordFuture, timeout_s: float | None) -> bool:
        """Wait until the outcome of ``future`` is known. False if time ran out."""
        with _LOCK:
            delivery, _index = future.place()
            condition = None if delivery._is_finished else delivery._condition()
        return condition is None or _wait(condition, future.done, timeout_s)


class RecordFuture(tuple[BatchDelivery, int, int, int, int]):
    """The outcome of one record, now or later, from any thread.

    A tuple (delivery, index in the batch, timestamp, bytes of key, bytes of value), for that is what Python makes
    fastest, and one is made for every record; only the methods are meant to be used.
    """

    __slots__ = ()

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self.place()[0].is_finished

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record went. Waits for it; raises ``TimeoutError`` if that takes longer than ``timeout_s``.

        Raises the ``ProduceError`` with which it failed.
        """
        error, metadata = self._wait_for_outcome(timeout_s)
        if error is not None:
            # All records of a batch share one exception: it must not grow with each that asks.
            raise error.with_traceback(None)
        return metadata

    def exception(self, timeout_s: float | None = None) -> ProduceError | None:
        """Why the record failed, None if it did not. Waits as ``result`` does."""
        return self._wait_for_outcome(timeout_s)[0]

    def add_done_callback(self, listener: Callable[[RecordFuture], object]) -> None:
        """Call ``listener`` with this future once it is done, in the thread that finishes it; at once if it is done.

        What it raises is logged.
        """
        self[0].listen(self, listener)

    def place(self) -> tuple[BatchDelivery, int]:
        """Where the outcome is now, and the record's index there: a batch that was too large is divided."""
        delivery, index, _timestamp_ms, _key_bytes, _value_bytes = self
        return delivery.place_of(index)

    def outcome(self) -> tuple[ProduceError | None, RecordMetadata]:
        """What callbacks are told. Only of a future that is done."""
        delivery, index, timestamp_ms, key_bytes, value_bytes = self
        topic, partition = delivery.topic, delivery.partition
        delivery, index = delivery.place_of(index)
        offset, log_append_time_ms, error = delivery.outcome(index)
        if error is not None:
            return error, _new_metadata((topic, partition, -1, -1, -1, -1))
        if log_append_time_ms >= 0:
            timestamp_ms = log_append_time_ms
        return None, _new_metadata((topic, partition, offset, timestamp_ms, key_bytes, value_bytes))

    def __repr__(self) -> str:
        delivery, index = self.place()
        return (
            f"RecordFuture({delivery.topic}-{delivery.partition}, record {index}, {'' if self.done() else 'not '}done)"
        )

    def _wait_for_outcome(self, timeout_s: float | None) -> tuple[ProduceError | None, RecordMetadata]:
        if not self.done() and not self[0].wait_for(self, timeout_s):
            delivery = self[0]
            raise TimeoutError(f"no outcome of a record for {delivery.topic}-{delivery.partition} in {timeout_s:g} s")
        return self.outcome()


def _wait(condition: threading.Condition, predicate: Callable[[], bool], timeout_s: float | None) -> bool:
    with condition:
        return condition.wait_for(predicate, timeout_s)
