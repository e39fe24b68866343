"""Portions: no request holds the event loop, however much it names and however large its answer is.

Owns how an answer is made in shares of a few milliseconds, with a turn of the loop between them, and the work that
depends on its arguments alone: that is done in another thread, one piece at a time. What is small, as nearly all is, is
answered at once. Does not own what any API answers, nor batches of records (``replicas.writes``).
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, Generic, TypeVar

from cluster.broker.checkpoints import Blocking
from cluster.broker.exchange import ClientGone
from cluster.broker.lane import LightestFirst, Slot
from cluster.broker.pauses import Shares
from cluster.protocol.message_classes import Message
from cluster.seams.out_of_memory import halt_if_out_of_memory

#: Requests up to this size are decoded on the event loop; of larger ones a copy is, beside it.
BYTES_AT_ONCE = 16_384
#: Requests up to this size are decoded even if the turn of the loop has been used up, until it is full; others then
#: wait for a share.
BYTES_ANYTIME = 2048
#: Of larger requests one is decoded, answered and encoded before the next (``RequestQuota``).
LARGE_BYTES = 65_536
#: The weight of work of which nothing is known but that it takes long: that of a megabyte to decode.
HEAVY = 1_048_576
#: The room of requests that never wait for each other.
UNBOUNDED = sys.maxsize
#: Answers with more structures than this are encoded off the event loop.
STRUCTURES_AT_ONCE = 1000
#: Bytes that take as long to encode as a structure.
_STRUCTURE_BYTES = 1024

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")

#: An answer in the making. It yields as often as it can (None), and work for another thread, whose result it gets.
Steps = Generator[Callable[[], Any] | None, Any, _Result]

#: Whether the client of a request has closed its connection, or its end of it.
IsGone = Callable[[], bool]


def never_gone() -> bool:
    """Of a request that may change something: it is carried out, no matter if anyone is there for its answer."""
    return False


class RequestQuota:
    """Room for decoded requests of more than ``free_bytes``, from the decoding to the encoded answer or until their
    handler lets go of them: for one above ``LARGE_BYTES``, and besides for some that are not, of twice that in all.

    A megabyte takes about ten while it is decoded, and what is left of many at once keeps their memory in pieces.
    """

    def __init__(self, free_bytes: int) -> None:
        self._free_bytes = free_bytes
        self._light = LightestFirst(2 * LARGE_BYTES)
        self._heavy = LightestFirst()

    def __repr__(self) -> str:
        return f"RequestQuota({self._light!r}, {self._heavy!r})"

    @asynccontextmanager
    async def of(self, size_bytes: int, is_gone: IsGone = never_gone) -> AsyncIterator[Slot | None]:
        """While a request of this size is worked on. Raises ``ClientGone`` as ``Beside.run`` does."""
        if size_bytes <= self._free_bytes:
            yield None
            return
        lane = self._light if size_bytes <= LARGE_BYTES else self._heavy
        async with lane.slot(size_bytes) as slot:
            if slot.has_waited and is_gone():
                raise ClientGone
            yield slot


class Beside:
    """Runs off the event loop what depends on its arguments alone. One piece of work heavier than ``LARGE_BYTES`` runs
    at a time, for each may need much memory; and one piece of lighter work besides, which takes milliseconds."""

    def __init__(self, blocking: Blocking) -> None:
        self._blocking = blocking
        self._one_at_a_time = LightestFirst()
        self._one_light = LightestFirst()
        #: For requests that do not wait for other clients while they are worked on.
        self.large = RequestQuota(LARGE_BYTES)
        #: For those of administrators, which the controller carries out one by one: most of their time they wait.
        self.administrators = RequestQuota(BYTES_AT_ONCE)
        #: For what brokers ask each other, of any size: what the controller tells must not wait for markers that wait
        #: for followers.
        self.brokers = RequestQuota(UNBOUNDED)

    def __repr__(self) -> str:
        return f"Beside({self._one_at_a_time!r})"

    async def run(self, work: Callable[[], _Result], is_gone: IsGone = never_gone, *, weight: int = HEAVY) -> _Result:
        """Return or raise what ``work`` does: the lighter first (``lane``). ``ClientGone`` if it had to wait, and
        ``is_gone`` once it has its slot."""
        found: list[_Result] = []
        lane = self._one_light if weight <= LARGE_BYTES else self._one_at_a_time
        async with lane.slot(weight) as slot:
            if slot.has_waited and is_gone():
                raise ClientGone
            await self._blocking(lambda: found.append(work()))
        return found[0]


async def begin_in_turn(size_bytes: int, shares: Shares) -> int:
    """Wait until a request of this size may be decoded; the time at which its share ends."""
    while True:
        end_ns = await shares.next()
        if may_begin(size_bytes, shares):
            return end_ns


def may_begin(size_bytes: int, shares: Shares) -> bool:
    """Whether a request of this size, at most ``BYTES_AT_ONCE``, may be decoded now, or is to wait for a share."""
    return not (shares.is_full() if size_bytes <= BYTES_ANYTIME else shares.is_over())


class Portions(Generic[_Result]):
    """One answer, made by its ``steps``."""

    __slots__ = ("_had", "_shares", "_steps", "_work", "is_done", "result")

    def __init__(self, steps: Steps[_Result], shares: Shares) -> None:
        self._steps = steps
        self._shares = shares
        self._work: Callable[[], Any] | None = None
        self._had = 0
        self.is_done = False
        #: Once it is done.
        self.result: _Result

    def __repr__(self) -> str:
        return f"Portions({'done' if self.is_done else 'in the making'})"

    def begin(self, end_ns: int = 0) -> bool:
        """Make one share of it, or what can be made until ``end_ns``; True if that was all. Raises what the steps
        raise."""
        self._had = 1
        return self._go_on(end_ns or self._shares.first_end_ns(), next, self._steps)

    async def finish(self, beside: Beside, is_gone: IsGone = never_gone) -> _Result:
        """Make the rest and return the answer. Raises what the steps raise, and ``ClientGone`` as ``Beside`` does."""
        steps = self._steps
        while not self.is_done:
            work, self._work = self._work, None
            if work is None:
                end_ns = await self._shares.next(self._had)
                self._had += 1
                self._go_on(end_ns, next, steps)
                continue
            try:
                found = await beside.run(work, is_gone, weight=getattr(work, "weight", HEAVY))
            except ClientGone:
                raise
            except Exception as error:
                halt_if_out_of_memory(error)
                self._go_on(self._shares.first_end_ns(), steps.throw, error)
            else:
                self._go_on(self._shares.first_end_ns(), steps.send, found)
        return self.result

    def _go_on(self, end_ns: int, resume: Callable[..., Callable[[], Any] | None], given: Any) -> bool:
        try:
            self._work = resume(given)
            while self._work is None and self._shares.now_ns() < end_ns:
                self._work = next(self._steps)
        except StopIteration as end:
            self.result, self.is_done = end.value, True
        return self.is_done


def all_of(steps: Steps[_Result]) -> _Result:
    """All of it at once, on a thread that may take its time. Raises what the steps raise."""
    given: Any = None
    while True:
        try:
            work = steps.send(given)
        except StopIteration as end:
            result: _Result = end.value
            return result
        given = None if work is None else work()


def chunks(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    """``items`` in order, ``size`` at a time."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def is_large(message: Message) -> bool:
    """Whether it takes long to encode a message of kafka-python's."""
    return _structures(message, STRUCTURES_AT_ONCE) < 0


def weight_of(message: Message) -> int:
    """That of encoding a large message: the bytes that take as long to decode."""
    return LARGE_BYTES if _structures(message, 4 * STRUCTURES_AT_ONCE) >= 0 else HEAVY


def _structures(message: Any, left: int) -> int:
    """``left`` less the structures in a message and what its bytes and texts count for; negative if these are more."""
    for name in message._struct.fields:
        value = getattr(message, name)
        if type(value) is bytes or type(value) is str:
            left -= len(value) // _STRUCTURE_BYTES
        elif type(value) is list:
            left -= len(value)
            if left < 0 or not value or not hasattr(value[0], "_struct"):
                continue
            for each in value:
                left = _structures(each, left)
                if left < 0:
                    break
    return left
