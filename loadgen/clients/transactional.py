"""The interface of clients that write transactions, and a wrapper that shares one such client among several streams.

Owns the interface, and passing a client's reports on to the right stream. A client's calls may run in another thread
than ``poll``, so its reports are kept until its streams are polled. Does not own what is in a transaction or how it
ends (``loadgen.transactions``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Protocol

from loadgen.clients.base import ClientCallbacks, ClientRefusal, Failure, ProducerClient, Retried

#: A record's tag: the number of its stream among those of the producer, and its sequence.
_SEQUENCE_BITS = 40
_SEQUENCE = (1 << _SEQUENCE_BITS) - 1


class Remedy(Enum):
    """What the load must do after a call that failed."""

    REPEAT = "make the same call again"
    ABORT = "abort the transaction"
    REPLACE = "close the producer and make another one"


class TransactionRefusal(Exception):
    """A call failed. ``is_certain``: it certainly had no effect."""

    def __init__(self, text: str, remedy: Remedy, *, is_certain: bool) -> None:
        super().__init__(text)
        self.remedy = remedy
        self.is_certain = is_certain


class TransactionalClient(ProducerClient, Protocol):
    """A producer with a ``transactional.id``. Calls may raise ``TransactionRefusal``.

    All calls except ``begin`` may wait, for about a second at most.
    """

    def initialize(self) -> None:
        """Get a producer id, and fence any other producer that had the ``transactional.id`` before."""
        ...

    def begin(self) -> None:
        """Begin a transaction, to which later records belong."""
        ...

    def occupy(self, topic: str) -> None:
        """Open a transaction at the coordinator without a record: add an offset of a group that no one uses."""
        ...

    def commit(self) -> None:
        """Send all queued records, and commit."""
        ...

    def abort(self) -> None:
        """Drop all queued records, and abort."""
        ...


TransactionalFactory = Callable[[ClientCallbacks], TransactionalClient]

#: The group of which a producer that takes over commits an offset, in a transaction that is never to be committed.
USURPERS = "gapless-usurpers"


def tag_of(stream: int, sequence: int) -> int:
    """The tag of a record. ``stream`` is its number among the streams of the producer."""
    return stream << _SEQUENCE_BITS | sequence


class SharedClient:
    """One transactional client, shared by the ``streams`` of one producer. Each stream has a ``StreamPart``.

    ``number`` is the number of this instance of the producer. ``is_failed``: the client cannot continue. ``doomed`` is
    why the open transaction can only be aborted; None if it may commit.
    """

    def __init__(
        self, number: int, streams: int, make_client: TransactionalFactory, dispose: Callable[[ProducerClient], None]
    ) -> None:
        self.number = number
        self._streams = streams
        self.is_failed = False
        self.doomed: str | None = None
        self.producer_id, self.producer_epoch = -1, -1
        self._dispose = dispose
        self._parts: dict[int, ClientCallbacks] = {}
        self._released = 0
        #: Reports of the client, from any thread, that no stream has got yet.
        self._told: deque[Callable[[], None]] = deque()
        self.client = make_client(
            ClientCallbacks(
                lambda *delivery: self._told.append(partial(self._delivered, *delivery)),
                lambda failure: self._told.append(partial(self._erred, failure)),
                lambda *identity: self._told.append(partial(self._identified, *identity)),
                lambda retried: self._told.append(partial(self._retried, retried)),
                lambda *lost: self._told.append(partial(self._disconnected, *lost)),
            )
        )

    def part(self, stream: int, callbacks: ClientCallbacks) -> StreamPart:
        """The client as one stream sees it; ``stream`` is its number among those of the producer."""
        self._parts[stream] = callbacks
        return StreamPart(self, stream)

    def poll(self) -> None:
        """Pass the client's reports on to the streams."""
        self.client.poll()
        while self._told:
            self._told.popleft()()

    def fail(self, reason: str) -> None:
        """Mark the client as failed for good, and tell every stream once."""
        if self.is_failed:
            return
        self.is_failed = True
        for callbacks in self._parts.values():
            callbacks.on_error(Failure(reason, is_fatal=True))

    def release(self) -> None:
        """Note that a stream no longer needs the client. Disposes of the client after the last one."""
        self._released += 1
        # a failed client gets no further streams
        if self._released == (len(self._parts) if self.is_failed else self._streams):
            self._dispose(self.client)

    def doom(self, reason: str) -> None:
        """Note that a record of the open transaction was refused or failed, so that it can only be aborted."""
        self.doomed = self.doomed or reason

    def _delivered(self, tag: int, failure: Failure | None, offset: int | None) -> None:
        self._parts[tag >> _SEQUENCE_BITS].on_delivery(tag & _SEQUENCE, _without_end(failure), offset)
        if failure is not None:
            self.doom(failure.text)
            self.fail_if_fatal(failure)

    def _erred(self, failure: Failure) -> None:
        if failure.is_fatal:
            self.fail(failure.text)
        else:
            next(iter(self._parts.values())).on_error(failure)

    def fail_if_fatal(self, failure: Failure) -> None:
        """Mark the client as failed if this failure is fatal."""
        if failure.is_fatal:
            self.fail(failure.text)

    def _identified(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        for callbacks in self._parts.values():
            callbacks.on_identity(producer_id, producer_epoch)

    def _retried(self, retried: Retried) -> None:
        """Report a retry to the stream of its batch, or to all streams if the client does not say which it is."""
        if retried.first is None or retried.last is None:
            for callbacks in self._parts.values():
                callbacks.on_retry(retried)
            return
        own = retried._replace(first=retried.first & _SEQUENCE, last=retried.last & _SEQUENCE)
        self._parts[retried.first >> _SEQUENCE_BITS].on_retry(own)

    def _disconnected(self, reason: str, connections: int) -> None:
        for callbacks in self._parts.values():
            callbacks.on_disconnect(reason, connections)

    def __repr__(self) -> str:
        return f"SharedClient({self.number}, streams={len(self._parts)}, failed={self.is_failed})"


class StreamPart:
    """``ProducerClient`` for one stream of a transactional producer."""

    def __init__(self, shared: SharedClient, stream: int) -> None:
        self.shared = shared
        self._stream = stream

    @property
    def is_cooperative(self) -> bool:
        return self.shared.client.is_cooperative

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        try:
            self.shared.client.produce(topic, partition, key, value, tag_of(self._stream, sequence))
        except ClientRefusal as refusal:
            self.shared.doom(refusal.failure.text)
            self.shared.fail_if_fatal(refusal.failure)
            raise ClientRefusal(refusal.failure._replace(is_fatal=False)) from refusal

    def poll(self) -> None:
        self.shared.poll()

    def purge(self) -> None:
        self.shared.client.purge()

    def dispose(self, timeout_s: float) -> bool:
        return self.shared.client.dispose(timeout_s)

    def __repr__(self) -> str:
        return f"StreamPart({self._stream} of {self.shared})"


def _without_end(failure: Failure | None) -> Failure | None:
    """The failure without its fatal mark, because ``SharedClient.fail`` tells all streams about the end at once."""
    return None if failure is None else failure._replace(is_fatal=False)
