"""watermark-under-min-isr: the high watermark moved while fewer than min.insync.replicas replicas were in sync.

Definition. When a leader adopts an ISR with fewer than ``min.insync.replicas`` members (or with fewer than all
replicas, if there are not that many), it notes this in its journal, together with its high watermark at that moment.
Until it notes a larger ISR, or that it no longer leads, that watermark must not move. The anomaly: a reader was told a
higher one meanwhile. Readers then receive records that the next election may remove. (Kafka: KAFKA-15583, KIP-966.)

This leader itself must have told the watermark. So, as for ``under-min-isr``, times count only if no other broker can
have led. And watermarks count only above the offset at which the leader's epoch begins: a lower one may come from a
former leader, whose answer was late or is still in the client's memory (the second example). If an election may
truncate committed records, or a fault removed records from a disk, a former leader may have told a higher one than
that, so only the partition's first epoch is judged. Legal: a watermark up to the noted one, no matter when a reader is
told about it; a watermark that moves after the ISR has grown. A missing journal shows nothing.

    b1 at 2.0 s: 1 of 2 wanted is in sync, high watermark 40     reader at 2.2 s: high watermark 55     b1, 9.0 s: over
    b1, epoch from 60: 1 of 2 in sync, high watermark 40         reader: high watermark 55, as b2 told it before: legal
"""

# From the brokers' journals and the rows of histories, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from verifier.in_sync.too_few import TooFew
from verifier.transactions.model import Anomalous
from verifier.transactions.state_records import TopicPartition

NAME = "watermark-under-min-isr"


class ToldWatermark(NamedTuple):
    """The high watermark that a reader knew when a poll returned, at ``complete_ns``."""

    place: TopicPartition
    process: str
    session: int
    high_watermark: int
    complete_ns: int


def watermark_under_min_isr(times: Sequence[TooFew], told: Iterable[ToldWatermark]) -> Iterator[Anomalous]:
    """One anomaly per row; ``offset`` is the first uncommitted one. ``times`` are when leaders had too small an ISR."""
    for each in told:
        for time in times:
            if (
                time.told is not None
                and each.place == time.place
                and each.high_watermark > time.told
                and time.start_ns < each.complete_ns < time.end_ns
            ):
                yield _anomalous(time, time.told, each)
                break


def _anomalous(time: TooFew, committed: int, each: ToldWatermark) -> Anomalous:
    detail = {
        **time.detail,
        "committed": committed,
        "process": each.process,
        "session": each.session,
        "high_watermark": each.high_watermark,
        "complete_ns": each.complete_ns,
    }
    return Anomalous(NAME, None, *each.place, committed, detail)
