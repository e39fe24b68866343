"""Appends of the group coordinator to ``__consumer_offsets``, and their results.

Owns their order: batches are appended as they were decided, and results are told in the order of each partition's log,
one at a time, never from within another decision. Does not own the append (``OwnWrites``), nor what a result means.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.pauses import Shares
from cluster.broker.replicas.own_writes import OwnWrites
from cluster.coordinator.group.decisions import GroupAppend
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.clock import Clock

#: An append, and what became of it: an error, or none and the position in the log.
Told = Callable[[GroupAppend, ErrorCode, int], None]


@dataclass(slots=True)
class _Pending:
    """``result`` is None until it is known."""

    append: GroupAppend
    result: tuple[ErrorCode, int] | None = None


class GroupAppends:
    """Of one broker. ``timeout_ms``: for how long one may wait for its replicas."""

    def __init__(self, own_writes: OwnWrites, clock: Clock, timeout_ms: int, told: Told, shares: Shares) -> None:
        self._loop = asyncio.get_running_loop()
        self._shares = shares
        self._is_postponed = False
        self._own_writes = own_writes
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._told = told
        self._asked: deque[GroupAppend] = deque()
        self._settled: deque[_Pending] = deque()
        #: Partition -> what waits for its result, in the order of the log.
        self._in_order: defaultdict[int, deque[_Pending]] = defaultdict(deque)
        self._is_running = False

    def __repr__(self) -> str:
        return f"<GroupAppends: {sum(map(len, self._in_order.values()))} without result>"

    def add(self, appends: Iterable[GroupAppend]) -> None:
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
                    self._told(settled.append, *(settled.result or (ErrorCode.UNKNOWN_SERVER_ERROR, -1)))
                if self._shares.is_over() and (self._asked or self._settled):
                    self._is_postponed = True
                    self._loop.call_soon(self._resume)
                    break
        finally:
            self._is_running = False

    def _write(self, append: GroupAppend) -> None:
        wall_ms = self._clock.wall_ms()
        batch = build_batch(
            [NewRecord(wall_ms, key, value) for key, value in append.records],
            producer_id=append.producer_id,
            producer_epoch=append.producer_epoch,
            transactional=append.producer_id >= 0,
        )
        pending = _Pending(append)
        self._in_order[append.partition].append(pending)
        settle = partial(self._settle, pending)
        self._own_writes.append(OFFSETS_TOPIC, append.partition, append.leader_epoch, batch, self._timeout_ms, settle)

    def _settle(self, pending: _Pending, error_code: ErrorCode, position: int) -> None:
        pending.result = (error_code, position)
        in_order = self._in_order[pending.append.partition]
        while in_order and in_order[0].result is not None:
            self._settled.append(in_order.popleft())
        self._run()
