"""wrong-end-offset: ListOffsets named an end that the partition cannot have had at the time.

Definition. A reader asked where a partition ends, and was answered before something below that offset can have been
there. ``not-yet-sent``: a value that was acknowledged below it was sent only after the answer had come. ``undecided``:
a session whose ``isolation`` row says that it reads only what is committed was told an end that is no last stable
offset. Either the log never had it as one: it is inside a transaction, between its first record and its marker, and
where no other transaction begins. Or below it is a record of a transaction that is committed, and that the client had
not asked to commit when the answer came. All times are from the monotonic clock of one machine. (Kafka: the high
watermark, and the last stable offset for readers of committed records; KAFKA-5522.) Legal: an end that is behind, as
one that a former leader tells is; an end beyond a transaction that was aborted before the client asked for its end. Not
judged under ``unclean.leader.election.enable``: an election may give an offset to another record.

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
