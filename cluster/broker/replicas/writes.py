"""Writes: one produce request across its partitions, and when it is answered.

Owns the way through a request's partitions, and the batches in which there is too much to look at on the event loop, or
of internal topics: they go to another thread, one at a time, and nothing else of their connection is taken meanwhile.
Does not own what holds for one partition of a request (``write_parts``), nor the append to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from cluster.broker.checkpoints import Blocking
from cluster.broker.internal_topics import INTERNAL_TOPICS
from cluster.broker.lane import LightestFirst
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.portions import IsGone, never_gone
from cluster.broker.replicas.host import ProducerGone, RequestRefused, WrittenBy
from cluster.broker.replicas.internal_checks import look_for
from cluster.broker.replicas.produce_checks import VALID_ACKS, Looked, kept, weight_of
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.broker.replicas.verified import NOT_ASKED, Verified
from cluster.broker.replicas.write_parts import Respond, WaitingWrite, Waits, WriteParts
from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError
from cluster.protocol.batch import CODEC_MASK, TRANSACTIONAL_BIT, BatchHeader, only_batch
from cluster.protocol.errors import ErrorCode, InvalidBatch
from cluster.protocol.produce import ProducePartition, ProduceRequest, ProduceResult
from cluster.protocol.record_checks import BYTES_AT_ONCE, RECORDS_AT_ONCE, Effort, Postponed
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

#: Partitions of one request between two looks whether its share of the turn is over: a new segment takes long.
LOOK_EACH = 10
#: A batch with more records, or a compressed one, may take milliseconds: it is not begun in a turn that is used up.
QUICK_RECORDS = 1000
#: The result of a partition that has none yet.
_NOT_YET = ProduceResult("", -1, ErrorCode.NONE)


class Writes(WriteParts):
    """Of one broker. ``find`` returns a replica of it or raises ``RequestRefused``."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, Replica],
        find: Callable[[str, int], Replica],
        partition_exists: Callable[[str, int], bool],
        rules: Rules,
        wheel: TimerWheel,
        clock: Clock,
        storage_failed: Callable[[LogError], None],
        blocking: Blocking,
        shares: Shares,
        verifies_transactions: bool,
    ) -> None:
        super().__init__(partitions, find, partition_exists, rules, wheel, storage_failed, verifies_transactions)
        self._clock = clock
        self._blocking = blocking
        self._shares = shares
        self._effort = Effort()
        self._one_at_a_time = LightestFirst()

    def produce(
        self,
        request: ProduceRequest,
        client: WrittenBy,
        zstd_allowed: bool,
        now_ms: int,
        respond: Respond,
        waits: Waits,
        verified: Verified = NOT_ASKED,
        is_gone: IsGone = never_gone,
    ) -> Awaitable[None] | None:
        """Append what a producer sent, and respond when its acks say so. ``now_ms`` is monotonic; ``waits`` gets what
        waits for acknowledgements, if anything; ``verified`` is what the coordinator of its transaction said.

        Nothing of the frame is kept. What is returned, if anything, is to be awaited before another request of the same
        connection is taken: it continues with the batches that are examined elsewhere. It raises ``ProducerGone`` if
        ``is_gone`` after a wait for others, and nothing was appended yet.
        """
        wall_ms = self._clock.wall_ms()
        transactional_id, acks, _, partitions = request
        results: list[ProduceResult] = []
        waiting: list[WaitingWrite] = []
        postponed: list[tuple[int, ProducePartition]] = []
        effort = self._effort
        effort.renew()
        further: Sequence[ProducePartition] = ()
        until_ns = self._shares.first_end_ns() if len(partitions) > LOOK_EACH else 0
        for wanted in partitions:
            if until_ns and not (done := len(results)) % LOOK_EACH and done and self._shares.now_ns() >= until_ns:
                further = partitions[done:]
                break
            try:
                topic, number, records = wanted
                partition = self._partitions.get((topic, number))
                if partition is None or records is None or topic in INTERNAL_TOPICS or acks not in VALID_ACKS:
                    partition, records = self._admit(wanted, acks, client, zstd_allowed)
                    if topic in INTERNAL_TOPICS:
                        raise Postponed
                header = only_batch(records, zstd_allowed)
                attributes = header.attributes
                if (header.record_count > QUICK_RECORDS or attributes & CODEC_MASK) and self._shares.is_over():
                    raise Postponed
                if attributes & TRANSACTIONAL_BIT:
                    self._check_transaction(partition, transactional_id, header, verified)
                info, epoch = partition.append(records, header, acks, now_ms, wall_ms, effort, client.host)
            except (RequestRefused, InvalidBatch, LogError) as error:
                results.append(self._refused(wanted, error))
                continue
            except Postponed:
                postponed.append((len(results), kept(wanted)))
                results.append(_NOT_YET)
                continue
            results.append(self._result(partition, acks, info, epoch, len(results), waiting))
        for wanted in further:
            postponed.append((len(results), kept(wanted)))
            results.append(_NOT_YET)
        if postponed:
            told = respond, waits, verified, is_gone
            return self._go_on(request, client, zstd_allowed, results, waiting, postponed, *told)
        if waiting:
            self._wait(request, results, waiting, respond, waits)
        else:
            respond(results)
        return None

    async def produce_in_shares(
        self,
        request: ProduceRequest,
        client: WrittenBy,
        zstd_allowed: bool,
        respond: Respond,
        waits: Waits,
        verified: Verified = NOT_ASKED,
        is_gone: IsGone = never_gone,
    ) -> None:
        """The same for a request that names very many partitions, whose records are its own."""
        results = [_NOT_YET] * len(request.partitions)
        told = respond, waits, verified, is_gone
        await self._go_on(request, client, zstd_allowed, results, [], enumerate(request.partitions), *told)

    async def _go_on(
        self,
        request: ProduceRequest,
        client: WrittenBy,
        zstd_allowed: bool,
        results: list[ProduceResult],
        waiting: list[WaitingWrite],
        postponed: Iterable[tuple[int, ProducePartition]],
        respond: Respond,
        waits: Waits,
        verified: Verified,
        is_gone: IsGone,
    ) -> None:
        """The rest of a request."""
        has_begun = any(result.error_code == ErrorCode.NONE and result is not _NOT_YET for result in results)

        def check_gone(has_waited: bool) -> None:
            if has_waited and not has_begun and is_gone():
                raise ProducerGone

        check_gone(await self._shares.fresh())
        effort = Effort.all()
        pause = Pauses(self._shares)
        for index, wanted in postponed:
            await pause()
            few_bytes = min(BYTES_AT_ONCE, effort.bytes_left)
            few = Effort(few_bytes, 0 if wanted.topic in INTERNAL_TOPICS else RECORDS_AT_ONCE)
            try:
                partition, records = self._admit(wanted, request.acks, client, zstd_allowed)
                header = only_batch(records, zstd_allowed)
                if header.attributes & TRANSACTIONAL_BIT:
                    self._check_transaction(partition, request.transactional_id, header, verified)
                now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
                try:
                    info, epoch = partition.append(records, header, request.acks, now_ms, wall_ms, few, client.host)
                    effort.bytes_left -= few_bytes - few.bytes_left
                except Postponed:
                    partition, info, epoch = await self._looked_and_appended(
                        wanted, records, header, request, client.host, effort, verified, check_gone
                    )
            except (RequestRefused, InvalidBatch, LogError) as error:
                results[index] = self._refused(wanted, error)
            else:
                has_begun = True
                results[index] = self._result(partition, request.acks, info, epoch, index, waiting)
        if still := self._still_waiting(results, waiting):
            self._wait(request, results, still, respond, waits)
        else:
            respond(results)

    async def _looked_and_appended(
        self,
        wanted: ProducePartition,
        records: memoryview,
        header: BatchHeader,
        request: ProduceRequest,
        host: str,
        effort: Effort,
        verified: Verified,
        check_gone: Callable[[bool], None],
    ) -> tuple[Replica, AppendInfo, int]:
        """One at a time: each may unpack to a hundred megabytes. ``check_gone`` is told whether it had to wait. Raises
        as ``Replica.append`` does."""
        async with self._one_at_a_time.slot(weight_of(header)) as slot:
            check_gone(slot.has_waited)
            config = self._find(wanted.topic, wanted.partition).log.config
            look = look_for(wanted.topic)
            found: list[Looked] = []
            await self._blocking(lambda: found.append(look(records, header, config, effort)))
            # Roles may have changed meanwhile.
            partition = self._find(wanted.topic, wanted.partition)
            if header.attributes & TRANSACTIONAL_BIT:
                self._check_transaction(partition, request.transactional_id, header, verified)
            times_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
            return partition, *partition.append(records, header, request.acks, *times_ms, effort, host, found[0])
