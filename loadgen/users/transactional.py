"""The writer of a producer user in a load with transactions: one transaction after the other, at a rate.

Owns pacing, and which transaction is aborted on purpose, or taken over. A record that becomes due while a transaction
ends is sent late, in the next one. Does not own what a transaction is (``loadgen.transactions``).
"""

from __future__ import annotations

from collections.abc import Callable

import gevent

from cluster.seams.units import ns_of_seconds, seconds_of_ns
from loadgen.clients.choice import transactional_factory
from loadgen.clients.late import late_factory
from loadgen.clients.transactional import TransactionalFactory, TransactionRefusal
from loadgen.pace import OpenSchedule, staggered_start_ns
from loadgen.transactional_ids import shared_id, transactional_id
from loadgen.transactions import TransactionalProducer
from loadgen.users.process import LoadProcess
from loadgen.users.streams import FULL_NS, MAX_TICK_NS, MIN_TICK_NS
from loadgen.users.threads import begin_waiting

#: The time between two checks whether a producer can begin its next transaction. Replacing an instance takes time.
NOT_READY_NS = 50_000_000
#: How long a commit or abort is repeated. Then the producer is replaced, which ends its transaction, too.
PATIENCE_NS = 30_000_000_000


class TransactionalWriter:
    """One transactional producer."""

    def __init__(self, process: LoadProcess, bootstrap: str) -> None:
        self._process = process
        self._clock = process.clock
        settings = process.settings
        self._plan = settings.transaction_plan
        self._run_id = settings.run_id
        self._stopping_ns: int | None = None
        # before any call that lets another user start
        numbers = process.next_numbers(self._plan.partitions)
        self._first = numbers[0]
        self._number = self._first // self._plan.partitions
        self._sends_late = self._number < self._plan.late
        self._producer = TransactionalProducer(
            streams=numbers,
            make_stream=lambda number, make, dispose: process.new_stream(bootstrap, number, make, dispose),
            make_client=self._factory(bootstrap),
            dispose=process.disposals.dispose,
            recorder=process.recorder,
            clock=process.clock,
            call=_waited_for,
            is_over=self._is_over,
        )
        rate = settings.rate_per_producer
        start_ns = staggered_start_ns(self._clock.monotonic_ns(), self._number, settings.users, rate)
        self._schedule = OpenSchedule(start_ns, rate, settings.rate_shape)
        self._sent = 0
        self._transactions = 0
        self._in_this_one = 0
        self._is_to_be_zombie = False
        self._is_late = False
        #: the newest instance, and until when it rests, so that its rivals can use the id; the first instance does not
        self._rests = (0, 0)

    def finish(self) -> None:
        """End the open transaction as planned, and close the streams."""
        self._stopping_ns = self._clock.monotonic_ns()
        self._process.backlogs.pop(self._first, None)
        if self._producer.is_open:
            self._end()
        for stream in self._producer.streams:
            self._process.finish(stream)

    def write_due(self, now_ns: int) -> int:
        """Begin, continue or end a transaction, as is due. Returns the ns until the next call."""
        producer = self._producer
        due = self._schedule.due_count(now_ns)
        self._process.backlogs[self._first] = due - self._sent
        if not producer.is_open:
            if due == self._sent:
                return self._until_due(now_ns)
            if self._is_resting(now_ns) or not producer.is_ready() or not producer.begin():
                return NOT_READY_NS
            self._in_this_one = 0
            if not self._sends_late:
                self._is_to_be_zombie = self._plan.is_taken_over(self._run_id, self._number, self._transactions)
                self._is_late = self._plan.is_taken_over_late(self._run_id, self._number, self._transactions)
        if producer.is_doomed or self._in_this_one == self._plan.records:
            self._end()
            return 0
        return self._send(due, now_ns)

    def _factory(self, bootstrap: str) -> TransactionalFactory:
        settings = self._process.settings
        if self._sends_late:
            return late_factory(bootstrap, self._transactional_id(), self._clock)
        return transactional_factory(bootstrap, self._transactional_id(), settings, self._clock)

    def _transactional_id(self) -> str:
        settings = self._process.settings
        if self._plan.rivals > 1:
            return shared_id(self._run_id, self._number, settings.users, self._plan.rivals)
        return transactional_id(self._run_id, self._process.process, self._first)

    def _is_resting(self, now_ns: int) -> bool:
        """Whether a rival fenced this producer a short time ago, and gets time for some transactions."""
        instance, until_ns = self._rests
        if self._producer.instance != instance:
            instance = self._producer.instance
            rests_s = self._plan.rests_s(self._run_id, self._number, instance)
            self._rests = instance, (until_ns := now_ns + ns_of_seconds(rests_s))
        return now_ns < until_ns

    def _send(self, due: int, now_ns: int) -> int:
        """Send the records of this transaction that are due, to its streams in turn."""
        streams = self._producer.streams
        while self._sent < due and self._in_this_one < self._plan.records:
            if self._is_to_be_zombie and not self._is_late and self._in_this_one == self._plan.records // 2:
                self._is_to_be_zombie = False
                self._producer.take_over()
                return 0
            stream = streams[self._in_this_one % len(streams)]
            # others run while the client waits for room, so the producer may have failed and been replaced meanwhile
            if not self._producer.is_open or not stream.send(self._schedule.due_ns(self._sent)):
                return 0 if self._producer.is_doomed else FULL_NS
            self._sent += 1
            self._in_this_one += 1
        return 0 if self._in_this_one == self._plan.records else self._until_due(now_ns)

    def _until_due(self, now_ns: int) -> int:
        return min(MAX_TICK_NS, max(MIN_TICK_NS, self._schedule.due_ns(self._sent) - now_ns))

    def _end(self) -> None:
        """Commit, or abort as planned. Every second planned abort comes only after its records are stored.

        If the end of the load has cut a transfer in two, always aborts.
        """
        number = self._transactions
        self._transactions += 1
        if self._is_late:
            self._is_late = self._is_to_be_zombie = False
            self._wait_until_stored()
            self._producer.take_over(occupies=True)
        if not self._plan.is_whole(self._process.settings.kind, self._in_this_one):
            self._producer.end("abort")
            return
        if not self._plan.is_aborted(self._run_id, self._number, number):
            self._producer.end("commit")
            return
        if number % 2 and not self._sends_late:
            self._wait_until_stored()
        self._producer.end("abort")

    def _wait_until_stored(self) -> None:
        """Wait until the records of the transaction are stored, if that is possible."""
        begun_ns = self._clock.monotonic_ns()
        while self._producer.outstanding and self._producer.is_open and not self._is_over(begun_ns):
            gevent.sleep(seconds_of_ns(MIN_TICK_NS))

    def _is_over(self, since_ns: int) -> bool:
        """Whether a call that began at ``since_ns`` has been repeated for long enough."""
        now_ns = self._clock.monotonic_ns()
        if self._stopping_ns is None and self._process.stopping:
            self._stopping_ns = now_ns
        if self._stopping_ns is not None:
            return now_ns - self._stopping_ns >= ns_of_seconds(self._process.settings.flush_timeout_s)
        return now_ns - since_ns >= PATIENCE_NS

    def __repr__(self) -> str:
        return f"TransactionalWriter({self._producer})"


def _waited_for(is_cooperative: bool, work: Callable[[], None]) -> TransactionRefusal | None:
    """Do blocking work without blocking the hub. Returns its refusal, or None."""

    def told() -> TransactionRefusal | None:
        try:
            work()
        except TransactionRefusal as refusal:
            return refusal
        return None

    outcome: TransactionRefusal | None = begin_waiting(is_cooperative, told).get()
    return outcome
