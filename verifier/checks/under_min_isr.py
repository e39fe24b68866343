"""under-min-isr: a write was acknowledged with acks=all while fewer than min.insync.replicas replicas were in sync.

Definition. In a run with acks=all, a record was sent after the leader of its partition had noted in its journal that it
adopted an ISR with fewer than ``min.insync.replicas`` members (or with fewer than all replicas, if there are not that
many), and was acknowledged before the leader noted a larger ISR, or that it no longer leads. Times count only if no
other broker can have led, and no controller had written a larger ISR. Both times are from the monotonic clock of one
machine. (Kafka: NOT_ENOUGH_REPLICAS; KAFKA-1555.) Unlike for ``lost-write``, it does not matter what was lost, or which
elections are allowed. Legal: a record that was sent before the leader adopted the smaller ISR, or that is acknowledged
after the ISR has grown; a leader that does not know yet that its ISR shrank, and waits for all of the larger one; a
former leader that does not know about a later one. A missing journal shows nothing.

    b1 at 2.0 s: 1 of 2 wanted is in sync      send s1/4: from 2.1 s on, acknowledged at 2.2 s      b1 at 9.0 s: over
"""

# From the brokers' journals and the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from verifier.in_sync.too_few import TooFew
from verifier.transactions.model import Anomalous
from verifier.transactions.state_records import TopicPartition

NAME = "under-min-isr"


class Acknowledged(NamedTuple):
    """A row of acknowledged sends. ``sequence`` and ``offset`` (-1 if unknown) are those of its first value.

    No value of the row was sent before ``invoke_ns``, and all were acknowledged by ``complete_ns``.
    """

    place: TopicPartition
    stream: int
    sequence: int
    offset: int
    invoke_ns: int
    complete_ns: int


def under_min_isr(times: Sequence[TooFew], acknowledged: Iterable[Acknowledged]) -> Iterator[Anomalous]:
    """One anomaly per row; ``offset`` is that of its first value. ``times`` are when leaders had too small an ISR."""
    for each in acknowledged:
        for time in times:
            if each.place == time.place and time.start_ns < each.invoke_ns and each.complete_ns < time.end_ns:
                yield _anomalous(time, each)
                break


def _anomalous(time: TooFew, each: Acknowledged) -> Anomalous:
    detail = {
        **time.detail,
        "sent_ns": each.invoke_ns,
        "stream": each.stream,
        "sequence": each.sequence,
    }
    return Anomalous(NAME, None, *each.place, each.offset if each.offset >= 0 else None, detail)
