"""Appends of a coordinator to its internal topic, and their results.

Owns their order: batches are appended as they were decided, and results are told in the order of each partition's log,
one at a time, never from within another decision. Does not own the append (``OwnWrites``), what is in a batch, nor what
a result means.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from cluster.broker.pauses import Shares
from cluster.broker.replicas.own_writes import NO_OFFSET, OwnWrites, WriteTold
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

MayWrite = Callable[[], bool]


class OwnAppend(NamedTuple):
    """One batch, made by ``build`` from the wall clock when its turn has come. ``told`` learns of an error, or of none
    and the position in the log. ``in_that_epoch``: it is decided for that leader epoch alone, no matter who leads on.
    ``may_write``, asked right before, may refuse it with INVALID_TXN_STATE.
    """

    topic: str
    partition: int
    leader_epoch: int
    build: Callable[[int], bytes]
    told: WriteTold
    in_that_epoch: bool = False
    may_write: MayWrite | None = None


@dataclass(slots=True)
class _Pending:
    """``result`` is None until it is known."""

    append: OwnAppend
    result: tuple[ErrorCode, int] | None = None


class OrderedAppends:
    """Of one coordinator. ``timeout_ms``: for how long one may wait for its replicas."""

    def __init__(self, own_writes: OwnWrites, clock: Clock, timeout_ms: int, shares: Shares) -> None:
        self._loop = asyncio.get_running_loop()
        self._shares = shares
        self._is_postponed = False
        self._own_writes = own_writes
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._asked: deque[OwnAppend] = deque()
        self._settled: deque[_Pending] = deque()
        #: Partition -> what waits for its result, in the order of the log.
        self._in_order: defaultdict[TopicPartition, deque[_Pending]] = defaultdict(deque)
        self._is_running = False

    def __repr__(self) -> str:
        return f"<OrderedAppends: {sum(map(len, self._in_order.values()))} without result>"

    def add(self, appends: Iterable[OwnAppend]) -> None:
        """Have these appended, in this turn of the loop unless it is used up. Results may be told before this
        returns."""
        self._asked.extend(appends)
        self._run()

    def _resume(self) -> None:
        self._is_postponed = False
        self._run()

    def _run(self) -> None:
        if self._is_running or self._is_postponed:
            return
        self._is_running = True
        try:
            while self._asked or self._settled:
                if self._asked:
                    self._write(self._asked.popleft())
                else:
                    settled = self._settled.popleft()
                    settled.append.told(*(settled.result or (ErrorCode.UNKNOWN_SERVER_ERROR, NO_OFFSET)))
                if self._shares.is_over() and (self._asked or self._settled):
                    self._is_postponed = True
                    self._loop.call_soon(self._resume)
                    break
        finally:
            self._is_running = False

    def _write(self, append: OwnAppend) -> None:
        pending = _Pending(append)
        self._in_order[append.topic, append.partition].append(pending)
        if append.may_write is not None and not append.may_write():
            self._settle(pending, ErrorCode.INVALID_TXN_STATE, NO_OFFSET)
            return
        self._own_writes.append(
            append.topic,
            append.partition,
            append.leader_epoch,
            append.build(self._clock.wall_ms()),
            self._timeout_ms,
            partial(self._settle, pending),
            in_that_epoch=append.in_that_epoch,
        )

    def _settle(self, pending: _Pending, error_code: ErrorCode, position: int) -> None:
        pending.result = (error_code, position)
        in_order = self._in_order[pending.append.topic, pending.append.partition]
        while in_order and in_order[0].result is not None:
            self._settled.append(in_order.popleft())
        self._run()
