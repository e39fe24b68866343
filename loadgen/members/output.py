"""Consume, transform, produce: one transaction for what a member was delivered. Owns its steps and their repetition.

Kafka's read-process-write (KIP-98, KIP-447): records are written to the output topic, the offsets of their input are
added to the transaction with the member's group metadata, and it is committed. Does not own what its errors ask for
(``loadgen.clients.transactional``). Its calls block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from cluster.seams.clock import Clock
from cluster.seams.units import ns_of_seconds
from loadgen.clients.base import ClientCallbacks, ClientRefusal, ignore
from loadgen.clients.transactional import Remedy, TransactionalClient, TransactionRefusal
from loadgen.members.events import Assigned, Delivered, MemberEvent, Revoked, Transacted, TransactionEnd
from loadgen.spans import ReadRecord
from verifier.evidence.history import HistoryOutcome
from verifier.evidence.output import OUTPUT_TOPIC

#: The time limit for a call with all its repetitions: longer than a transaction may be open.
GIVE_UP_S = 20.0
#: The text in the history for a crash inside a transaction, which commits nothing.
CRASHED = "crashed before its commit"
#: Ignores the outcomes of single records: if one fails, its transaction cannot be committed, which is recorded.
UNHEARD = ClientCallbacks(lambda *_told: None, ignore, lambda *_told: None)


class OutputProducer(TransactionalClient, Protocol):
    """The transactional producer of a member."""

    def add_offsets(self, topic: str, offsets: Mapping[int, int], member: Any) -> None:
        """Add offsets to the transaction for ``member``, a consumer of the same library. Raises TransactionRefusal."""
        ...


class Transformation:
    """Makes the transactions of one member. Call ``initialize`` first."""

    def __init__(self, output: OutputProducer, topic: str, clock: Clock) -> None:
        self.output = output
        self._topic = topic
        self._clock = clock

    def __repr__(self) -> str:
        return f"Transformation({self.output})"

    def initialize(self) -> str | None:
        """Fence the previous producer of this place. Returns why that was impossible; None if it worked."""
        refusal = self._repeated(self.output.initialize)
        return None if refusal is None else str(refusal)

    def transact(self, records: Sequence[ReadRecord], member: Any, *, is_to_crash: bool) -> Transacted:
        """Make one transaction for these records. ``is_to_crash``: leave it open before its commit."""
        begin_ns = self._clock.monotonic_ns()
        inputs = inputs_of(records)
        refusal = self._written(records)
        added_ns = self._clock.monotonic_ns()
        if refusal is None:
            offsets = {partition: last + 1 for partition, (_, last) in inputs.items()}
            refusal = self._repeated(lambda: self.output.add_offsets(self._topic, offsets, member))
        now_ns = self._clock.monotonic_ns()
        added: HistoryOutcome = "ok" if refusal is None else "info"
        ends: list[TransactionEnd] = []
        if is_to_crash:
            ends.append(TransactionEnd("abort", "info", CRASHED, now_ns, now_ns))
        else:
            if refusal is None:
                refusal = self._commit(ends)
            if refusal is not None and refusal.remedy is not Remedy.REPLACE:
                self._end("abort", self.output.abort, ends)
            elif refusal is not None and not ends:
                # the commit was never requested, so the next producer of this place will abort the transaction
                ends.append(TransactionEnd("abort", "info", str(refusal), now_ns, now_ns))
        error = None if added == "ok" else str(refusal)
        return Transacted(inputs, added, error, begin_ns, (added_ns, now_ns), ends)

    def _written(self, records: Sequence[ReadRecord]) -> TransactionRefusal | None:
        try:
            self.output.begin()
        except TransactionRefusal as refusal:
            return refusal
        for number, record in enumerate(records):
            if (refused := self._produced(record, number)) is not None:
                return refused
        return None

    def _produced(self, record: ReadRecord, number: int) -> TransactionRefusal | None:
        deadline_ns = self._clock.monotonic_ns() + ns_of_seconds(GIVE_UP_S)
        while True:
            try:
                self.output.produce(OUTPUT_TOPIC, record.partition, None, record.value or b"", number)
            except BufferError as error:
                self.output.poll()
                if self._clock.monotonic_ns() >= deadline_ns:
                    return TransactionRefusal(str(error), Remedy.ABORT, is_certain=True)
            except ClientRefusal as refusal:
                return TransactionRefusal(str(refusal), Remedy.ABORT, is_certain=True)
            else:
                self.output.poll()
                return None

    def _commit(self, ends: list[TransactionEnd]) -> TransactionRefusal | None:
        return self._end("commit", self.output.commit, ends)

    def _end(self, f: Any, call: Callable[[], None], ends: list[TransactionEnd]) -> TransactionRefusal | None:
        """Commit or abort, and repeat that while it helps. All attempts together make one row."""
        begin_ns = self._clock.monotonic_ns()
        refusal = self._repeated(call)
        outcome: HistoryOutcome = "ok" if refusal is None else "fail" if refusal.is_certain else "info"
        error = None if refusal is None else str(refusal)
        ends.append(TransactionEnd(f, outcome, error, begin_ns, self._clock.monotonic_ns()))
        return refusal

    def _repeated(self, call: Callable[[], None]) -> TransactionRefusal | None:
        """Repeat the call; returns the final refusal. It is uncertain if an earlier attempt may have succeeded."""
        deadline_ns = self._clock.monotonic_ns() + ns_of_seconds(GIVE_UP_S)
        is_first = True
        while True:
            try:
                call()
            except TransactionRefusal as refusal:
                self.output.poll()
                if refusal.remedy is not Remedy.REPEAT or self._clock.monotonic_ns() >= deadline_ns:
                    refusal.is_certain &= is_first
                    return refusal
                is_first = False
            else:
                self.output.poll()
                return None


def inputs_of(records: Sequence[ReadRecord]) -> dict[int, tuple[int, int]]:
    """The first and last offset of each partition."""
    inputs: dict[int, tuple[int, int]] = {}
    for record in records:
        first, _ = inputs.get(record.partition, (record.offset, 0))
        inputs[record.partition] = first, record.offset
    return inputs


def delivered(events: Iterable[MemberEvent]) -> list[ReadRecord]:
    """The records of a poll from partitions that the member still has. The next owner of others gets theirs again."""
    records: list[ReadRecord] = []
    for event in events:
        match event:
            case Delivered():
                records += event.records
            case Revoked():
                records = [each for each in records if each.partition not in event.offsets]
            case Assigned():
                records = [each for each in records if each.partition not in event.partitions]
    return records
