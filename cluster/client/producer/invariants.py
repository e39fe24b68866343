"""Invariants of the batches of one producer: where they wait, how much memory they hold, and which request has them.

They hold while the producer's lock is held. ``validate_accumulator`` checks, between any two of its methods:

* ``queue-once``: a queue is not empty and has only batches of its own partition, and each waiting batch is in exactly
  one queue, once.
* ``queue-incomplete``: a waiting batch has no outcome, and is among the incomplete batches.
* ``queue-order``: batches with a sequence come first, in the order of their sequences and with one identity; batches
  without a sequence follow in the order in which they were created.
* ``open-last``: a batch that can still take a record is the last one in its queue.
* ``retry-queued``: a batch that is backing off before a retry waits in a queue.
* ``memory``: the part of ``buffer.memory`` that is allocated equals what the batches without an outcome hold (only if
  that number is passed: completed batches free theirs after the lock is released).

``validate_sender`` checks, after ``tick`` and before the next event:

* ``in-flight-once``: a batch is in at most one request at a time, and then not in a queue.
* ``in-flight-count``: a node has at most ``max.in.flight.requests.per.connection`` requests, exactly as many as are
  counted, and none without a connection.
* ``nothing-forgotten``: a batch without an outcome waits in a queue or is in a request.
* ``muted``: with one request in flight, the muted partitions are those in requests; otherwise, no partition is muted.
* ``doubtful``: only batches without an outcome are doubtful, that is, may be stored by an earlier attempt.

``validate_identity`` is part of that with idempotence, unless the identity is fatal or the sender was told to abandon
everything (it then numbers no more batches):

* ``identity-ready``: a ready identity has an id and an epoch, which is not above the last epoch.
* ``sequence-order``: the unsettled batches of a partition have the identity of the partition, and their sequences
  ascend. The next new sequence follows all of them, and the last acknowledged one.
* ``sequence-window``: from the first of them on, at most ``max.in.flight`` batches were numbered.
* ``sequence-held``: they wait in a queue or are in a request, and a queued batch with a sequence is one of them.
* ``at-broker``: the batches recorded as being at a broker are those in a request.
* ``troubled``: a partition whose sequences are to be resolved or restarted is recorded as troubled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING

from cluster.client.producer import idempotence
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.idempotence import NO_SEQUENCE, IdentityState, ProducerIdentity, is_after
from cluster.client.producer.sender import SenderCore
from cluster.invariants import InvariantBroken

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch
    from cluster.topic_partition import TopicPartition


def validate_accumulator(accumulator: RecordAccumulator, allocated_bytes: int | None = None) -> None:
    """``allocated_bytes`` is the allocated part of ``buffer.memory``, if only batches hold any. Raises
    ``InvariantBroken``."""
    queued = [batch for queue in accumulator._queues.values() for batch in queue]
    if len(queued) != len(set(queued)) or set(queued) != accumulator._queued:
        raise InvariantBroken(accumulator, "queue-once", f"{queued}, known to be queued {accumulator._queued}")
    for topic_partition, queue in accumulator._queues.items():
        if not queue or any((batch.topic, batch.partition) != topic_partition for batch in queue):
            raise InvariantBroken(accumulator, "queue-once", f"{topic_partition}: {list(queue)}")
        _validate_queue(accumulator, tuple(queue))
    for batch in accumulator._incomplete:
        if batch.is_done:
            raise InvariantBroken(accumulator, "queue-incomplete", f"{batch!r} has its outcome")
    for topic, opened in accumulator._open.items():
        for partition, batch in opened.items():
            if list(accumulator._queues.get((topic, partition), ()))[-1:] != [batch]:
                raise InvariantBroken(accumulator, "open-last", f"{batch!r} of {topic}-{partition}")
    if not accumulator._queued.issuperset(accumulator._retry_at_ms):
        raise InvariantBroken(accumulator, "retry-queued", f"{set(accumulator._retry_at_ms) - accumulator._queued}")
    held_bytes = sum(batch.memory_bytes for batch in accumulator._incomplete)
    if allocated_bytes not in (None, held_bytes):
        raise InvariantBroken(accumulator, "memory", f"{allocated_bytes} bytes are taken, batches hold {held_bytes}")


def _validate_queue(accumulator: RecordAccumulator, queue: Sequence[ProducerBatch]) -> None:
    for batch in queue:
        if not accumulator.is_incomplete(batch):
            raise InvariantBroken(accumulator, "queue-incomplete", f"{batch!r} waits, its outcome is decided")
    for one, after in pairwise(queue):
        if after.has_sequence:
            is_ordered = one.has_sequence and is_after(after.base_sequence, one.base_sequence)
            is_ordered = is_ordered and _identity_of(one) == _identity_of(after)
        else:
            is_ordered = one.has_sequence or one.created_ms <= after.created_ms
        if not is_ordered:
            raise InvariantBroken(accumulator, "queue-order", f"{one!r} before {after!r}")


def _identity_of(batch: ProducerBatch) -> tuple[int, int]:
    return batch.producer_id, batch.producer_epoch


def validate_sender(sender: SenderCore, allocated_bytes: int | None = None) -> None:
    """The sender with its accumulator and identity. Raises ``InvariantBroken``."""
    accumulator = sender._accumulator
    validate_accumulator(accumulator, allocated_bytes)
    sent = list(sender._requests.batches())
    times = Counter(sent)
    for batch, count in times.items():
        if count > 1 or batch in accumulator._queued:
            where = f"in {count} requests, queued: {batch in accumulator._queued}"
            raise InvariantBroken(sender, "in-flight-once", f"{batch!r} is {where}")
    for batch in accumulator._incomplete:
        if batch not in accumulator._queued and batch not in times:
            raise InvariantBroken(sender, "nothing-forgotten", f"{batch!r} waits nowhere")
    if not sender._doubtful <= accumulator._incomplete.keys():
        values = f"{sender._doubtful - accumulator._incomplete.keys()}"
        raise InvariantBroken(sender, "doubtful", f"{values} have their outcomes")
    _validate_connections(sender)
    is_one = sender._settings.max_in_flight == 1
    in_requests = {(batch.topic, batch.partition) for batch in sent} if is_one else set()
    if accumulator._muted != in_requests:
        raise InvariantBroken(sender, "muted", f"{accumulator._muted}, in requests are {in_requests}")
    if sender._identity is not None and sender._identity.state is not IdentityState.FATAL:
        validate_identity(sender._identity, times.keys(), accumulator._queued)


def _validate_connections(sender: SenderCore) -> None:
    requests = Counter(request.node for request in sender._requests._requests.values())
    nodes = sender._connections._nodes
    for node in requests.keys() | nodes.keys():
        count, state = requests[node], nodes.get(node)
        is_counted = state is not None and state.in_flight == count and (state.is_connected or not count)
        if not (is_counted and count <= sender._settings.max_in_flight):
            counted = "nothing" if state is None else f"{state.in_flight}, connected: {state.is_connected}"
            raise InvariantBroken(sender, "in-flight-count", f"node {node} has {count} requests, counted is {counted}")


def validate_identity(identity: ProducerIdentity, sent: Set[ProducerBatch], queued: Set[ProducerBatch]) -> None:
    """``sent`` are the batches in requests, ``queued`` those in queues. Raises ``InvariantBroken``."""
    numbers = identity.producer_id, identity.producer_epoch
    if identity.state is IdentityState.READY and not (numbers[0] >= 0 <= numbers[1] <= idempotence._LAST_EPOCH):
        raise InvariantBroken(identity, "identity-ready", f"{numbers}")
    for topic_partition, partition in identity._partitions.items():
        _validate_sequences(identity, topic_partition, partition)
        in_flight = partition.in_flight.keys()
        if not in_flight <= sent | queued:
            values = f"{topic_partition}: {in_flight - sent - queued} wait nowhere"
            raise InvariantBroken(identity, "sequence-held", values)
        if partition.at_broker != in_flight & sent:
            values = f"{topic_partition}: {partition.at_broker}, in requests are {in_flight & sent}"
            raise InvariantBroken(identity, "at-broker", values)
        is_troubled = partition.is_unresolved or partition.is_restarting
        if is_troubled and topic_partition not in identity._troubled:
            raise InvariantBroken(identity, "troubled", f"{topic_partition} is not in {identity._troubled}")
    for batch in queued:
        if batch.has_sequence and batch not in identity.in_flight((batch.topic, batch.partition)):
            raise InvariantBroken(identity, "sequence-held", f"{batch!r} waits with numbers that do not count")


def _validate_sequences(
    identity: ProducerIdentity, topic_partition: TopicPartition, partition: idempotence._PartitionSequence
) -> None:
    batches = list(partition.in_flight)
    numbers = (partition.producer_id, partition.producer_epoch)
    for one, after in pairwise(batches):
        if not is_after(after.base_sequence, one.last_sequence):
            raise InvariantBroken(identity, "sequence-order", f"{topic_partition}: {one!r} before {after!r}")
    strangers = [batch for batch in batches if _identity_of(batch) != numbers]
    newest = [batches[-1].last_sequence] if batches else []
    newest += [partition.last_acked_sequence] if partition.last_acked_sequence != NO_SEQUENCE else []
    if strangers or not all(is_after(partition.next_sequence, each) for each in newest):
        values = f"{topic_partition} of {numbers}: {batches}, next is {partition.next_sequence} after {newest}"
        raise InvariantBroken(identity, "sequence-order", values)
    span = partition.numbered - min(partition.in_flight.values(), default=partition.numbered)
    if span > identity._max_in_flight:
        values = f"{topic_partition}: {span} from {batches[0]!r} on, at most {identity._max_in_flight}"
        raise InvariantBroken(identity, "sequence-window", values)
