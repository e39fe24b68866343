"""wrong-end-offset: ListOffsets named an end that the partition cannot have had at the time.

Definition. A reader asked where a partition ends, and received an end offset that the partition cannot have had yet.
``not-yet-sent``: a value that was acknowledged below that offset was sent only after the answer had arrived.
``undecided``: a session with an ``isolation`` row, which reads only committed records, was told an end that cannot have
been the last stable offset. There are two cases. The offset is inside a transaction, between its first record and its
marker, and no other transaction begins there. Or there is a record below it whose transaction is committed, but whose
client had not requested the commit when the answer arrived. All times are from the monotonic clock of one machine.
(Kafka: the high watermark, and the last stable offset for readers of committed records; KAFKA-5522.) Legal: an end that
is too low, such as one from a former leader; an end beyond a transaction that was aborted before the client requested
that. Not judged under ``unclean.leader.election.enable``, because an election may give an offset to another record.

    readers-native: told the end 18 of t-0 at 2.0 s        send s1/4: at offset 17, intended for 2.1 s
"""

# From the rows of histories and the markers in the logs, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.transactions.ends import EndEvidence, ToldEnd
from verifier.transactions.model import Anomalous

NAME = "wrong-end-offset"
NOT_YET_SENT, UNDECIDED = "not-yet-sent", "undecided"


def wrong_end_offset(ends: EndEvidence) -> Iterator[Anomalous]:
    """At most one anomaly of each cause per answer; ``offset`` is the end that was told."""
    for told in ends.told:
        if (sent := ends.sent.latest_below(told.place, told.offset)) is not None and told.complete_ns < sent.time_ns:
            yield _anomalous(NOT_YET_SENT, told, sent.offset, sent.time_ns)
        if not told.is_committed:
            continue
        asked = ends.decided.latest_below(told.place, told.offset)
        begun = ends.stable.open_at(told.place, told.offset)
        if asked is not None and told.complete_ns < asked.time_ns:
            yield _anomalous(UNDECIDED, told, asked.offset, asked.time_ns)
        elif begun is not None:
            yield _anomalous(UNDECIDED, told, begun, None)


def _anomalous(cause: str, told: ToldEnd, below: int, time_ns: int | None) -> Anomalous:
    detail = {
        "reader": told.process,
        "session": told.session,
        "below": below,
        "told_ns": told.complete_ns,
        "later_ns": time_ns,
    }
    return Anomalous(NAME, cause, *told.place, told.offset, detail)
