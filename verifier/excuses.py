"""Which event in the evidence excuses which anomalous value. Owns the questions to Spark.

``verifier.expectation`` says what the settings permit; ``verifier.events`` makes the events.
Each event is a stretch of sequences of one stream:

- ``election``   an acknowledgement that an election seen by the conductor cut off. Its offset lies at or above the
  start of the new epoch and within what a log can have held, its time near the election's, and its stream has nothing
  up to it in the new epoch. Without an offset (acks=0) it lies, in its stream, after the last record that is in an
  earlier epoch.
- ``disconnect`` an acknowledgement without an offset that was under way when its own client lost a connection: sent
  about then (``CONNECTION_NS``), or since a fault began that held up what went to the leader and lasted until then; or
  sent shortly before its client was closed (``CLOSED_NS``). A connection delivers in order, and so takes one stretch
  of a stream with it: of losses whose times overlap, all count together, and if they would excuse more stretches than
  connections were lost, they excuse none.
- ``retry``      sequences that the client says it sent again, or may have, without having an outcome of them.
  No more copies than the attempts that failed had records: of retries that overlap, all count together, and if they
  excuse more, they excuse none. After an error that is answered before anything is stored they excuse no copies.
- ``timeout``    sequences that were outstanding when a delivery of their stream timed out (``TIMEOUT_NS`` around it).
- ``unanswered`` sequences whose outcome their client never learned, under way when it lost a connection, where the
  settings let them arrive late (``verifier.late``). A connection delivers in order: of sends whose times overlap, all
  count together, and if what is late of them takes more connections than were lost, none is excused.
- ``returned``   acknowledged sequences that were under way while their leader was replaced and led again, and are in
  its later epoch (``verifier.late``).

Polls and batch headers have no single value to go by: see ``verifier.by_partition``.

A lost value is excused if all its acknowledgements are; an offset, if everything that contradicts the log there is.
What is excused only in part is cut, and its parts are counted separately.

A worked example (``claims.cut``). Sequences 0 to 9 of a stream were acknowledged at offsets 0 to 9. The log has 0 to 3
and then others, and an election cut off offset 6 and all above. ``lost-write`` found one anomaly: 6 values from
sequence 4 on. Three rows of the stream go into ``cut``, each with where it begins and its length:

    anomaly (4, 6)      claim of an acknowledgement (0, 10)      election (6, 4)

They begin or end at 0, 4, 6 and 10, and so there are three pieces: 0 to 3 (the claim alone), 4 and 5 (claim and
anomaly), 6 to 9 (all three). What has no anomaly is dropped. Two parts are left of the one: sequence 4, 2 values, not
excused; and sequence 6, 4 values, ``step`` 2 into what was found, excused by the election.
"""

from __future__ import annotations

from functools import reduce
from threading import RLock

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from verifier.by_partition import by_partition, unexcused
from verifier.claims import ACK, LOG, READ, cut, pieces
from verifier.event_rows import EVENT
from verifier.events import COPIED, Events
from verifier.expectation import DISCONNECT, ELECTION, RETRY, RETURNED, TIMEOUT, UNANSWERED
from verifier.tables import Tables

#: The identity of a claim: by how much its offset is ahead of its sequence; this one if its offset is unknown.
NO_OFFSET = -(2**62)

_LOST = ("lost-write", "log-gap")
_AT_OFFSETS = "inconsistent-offsets"
_REPEATED = ("duplicate", "log-duplicate", "nonmonotonic-send", "log-reorder")
_COPIED = ("duplicate", "log-duplicate")
_CLAIM, _STANDS = "claim", "log"
#: What is kept of the anomaly of which a piece is judged.
_WHOLE = {
    "cause": "string", "sequence": "bigint", "offset": "bigint", "count": "bigint", "size": "bigint", "detail": "string"
}  # fmt: skip


class Excuses:
    """The events of all runs that are judged together. Nothing is asked before something needs to be excused."""

    def __init__(self, tables: Tables, events: Events) -> None:
        self._tables = tables
        self._source = events
        # ``Events`` is for one thread, and checks are judged in two
        self._lock = RLock()

    def split(self, check: str, found: DataFrame) -> DataFrame:
        """A check's anomalies with ``excuse`` (null: none), its ``event``, and ``step``.

        ``step``: how far into the original anomaly this part begins. Of the checks that go by values, an anomaly
        without a stream and a sequence is never excused; polls and headers go by partition.
        """
        with self._lock:
            if check == _AT_OFFSETS:
                return self._at_offsets(found)
            if check not in (*_LOST, *_REPEATED):
                return by_partition(check, found, self._tables, self._source)
            judgeable = F.col("stream").isNotNull() & F.col("sequence").isNotNull()
            return self._by_sequence(check, found.filter(judgeable)).unionByName(unexcused(found.filter(~judgeable)))

    def _by_sequence(self, check: str, found: DataFrame) -> DataFrame:
        key = ["place", "stream"]
        concerned = F.broadcast(found.select(*key).distinct())
        length = F.col("size") if check == "log-gap" else F.col("count")
        claims = self._tables.claims.filter(F.col("stream").isNotNull())
        source = ACK if check in _LOST else READ
        rows = [
            _rows(found, "sequence", length, whole=F.struct(*_WHOLE)),
            _rows(claims.filter(F.col("source") == source), "sequence", F.col("values"), _CLAIM),
            _rows(claims.filter(F.col("source") == LOG), "sequence", F.col("values"), _STANDS),
            *(self._events(kind, "sequence", check) for kind in self._kinds(check)),
        ]
        together = reduce(DataFrame.unionByName, rows).join(concerned, key, "left_semi")
        parts = _within_bounds(_judged(_pieces(together, key, "sequence"), check), check, key)
        step = F.col("sequence") - F.col("whole.sequence")
        if check != "log-gap":
            return _result(parts, step, F.col("values"), F.col("whole.size"))
        # one anomaly is a whole stretch: what is excused of it, and what is not, is one each
        grouped = parts.groupBy(*key, "whole", "excuse").agg(
            F.min("sequence").alias("sequence"),
            F.sum("values").alias("values"),
            F.min_by("event", "sequence").alias("event"),
            F.max(F.col("sequence") + F.col("values") - 1).alias("last_sequence"),
        )
        detail = F.to_json(F.struct("last_sequence"))
        return _result(grouped, step, F.lit(1), F.col("values"), detail)

    def _at_offsets(self, found: DataFrame) -> DataFrame:
        key = ["place"]
        concerned = F.broadcast(found.select(*key).distinct())
        claims = self._tables.claims.filter(F.col("offset").isNotNull() & F.col("stream").isNotNull())
        rows = [
            _rows(found.drop("stream"), "offset", F.col("count"), whole=F.struct(*_WHOLE)),
            _rows(claims.filter(F.col("source").isin(ACK, READ)), "offset", F.col("values"), _CLAIM),
            _rows(claims.filter(F.col("source") == LOG), "offset", F.col("values"), _STANDS),
            self._events(ELECTION, "offset", _AT_OFFSETS),
        ]
        together = reduce(DataFrame.unionByName, rows).join(concerned, key, "left_semi")
        parts = _judged(_pieces(together, key, "offset"), _AT_OFFSETS).withColumn("stream", F.lit(None).cast("bigint"))
        return _result(parts, F.col("offset") - F.col("whole.offset"), F.col("values"), F.col("whole.size"))

    def _kinds(self, check: str) -> tuple[str, ...]:
        if check in _LOST:
            return ELECTION, DISCONNECT
        return (ELECTION, RETRY, TIMEOUT) if check in _COPIED else (ELECTION, RETRY, TIMEOUT, UNANSWERED, RETURNED)

    def _events(self, kind: str, first: str, check: str) -> DataFrame:
        frame = self._source.of(COPIED if kind == RETRY and check in _COPIED else kind)
        if first == "offset":
            frame = frame.filter(F.col("offset").isNotNull())
        return _rows(frame, first, F.col("values"), kind, event=F.col("event"))


def _rows(
    frame: DataFrame,
    first: str,
    length: Column,
    kind: str | None = None,
    *,
    whole: Column | None = None,
    event: Column | None = None,
) -> DataFrame:
    """Anomalies (``whole``), claims and events in the one shape that is cut into pieces.

    ``who`` says which claim it is, or which claim an event excuses.
    """
    anomaly = f"struct<{','.join(f'{name}:{kind}' for name, kind in _WHOLE.items())}>"
    shift = F.coalesce(F.col("offset") - F.col("sequence"), F.lit(NO_OFFSET)).cast("string")
    who = shift if first == "sequence" else F.concat_ws("/", "stream", shift)
    keys = ["place", "stream"] if first == "sequence" else ["place"]
    return frame.select(
        *keys,
        F.col(first).alias(first),
        length.cast("bigint").alias("values"),
        F.lit(kind).cast("string").alias("kind"),
        (F.lit(None).cast("string") if whole is not None else who).alias("who"),
        (F.lit(None) if whole is None else whole).cast(anomaly).alias("whole"),
        (F.lit(None) if event is None else event).cast(EVENT).alias("event"),
    )


def _pieces(together: DataFrame, key: list[str], first: str) -> DataFrame:
    """The parts of anomalies, and what is said about each; those with nothing that stands between have one
    ``stretch``."""

    def who(*kinds: str) -> Column:
        return F.collect_set(F.when(F.col("kind").isin(*kinds), F.col("who")))

    below = Window.partitionBy(*key).orderBy(first).rowsBetween(Window.unboundedPreceding, 0)
    stands = F.max(F.when(F.size("stands") > 0, F.col(first))).over(below)
    parts = pieces(
        cut(together, key, first),
        key,
        first,
        F.max("whole").alias("whole"),
        who(_CLAIM).alias("claimed"),
        who(_STANDS).alias("stands"),
        *(who(kind).alias(f"who_{kind}") for kind in (ELECTION, DISCONNECT)),
        *(
            F.min(F.when(F.col("kind") == kind, F.col("event"))).alias(kind)
            for kind in (ELECTION, DISCONNECT, RETRY, TIMEOUT, UNANSWERED, RETURNED)
        ),
    )
    return parts.withColumn("stretch", F.coalesce(stands, F.lit(-1))).filter(F.col("whole").isNotNull())


def _judged(parts: DataFrame, check: str) -> DataFrame:
    """The pieces with ``excuse`` and ``event``: the first that holds, of those that may hold for this check."""
    strays = F.array_except("claimed", "stands")

    def all_in(excused: Column) -> Column:
        return (F.size(strays) > 0) & (F.size(F.array_except(strays, excused)) == 0)

    elected = all_in(F.col(f"who_{ELECTION}"))
    lost = all_in(F.array_union(f"who_{ELECTION}", f"who_{DISCONNECT}"))
    vanished = (F.col("whole.cause") == "vanished") & elected
    timed_out, retried = F.col(TIMEOUT).isNotNull(), F.col(RETRY).isNotNull()
    # what librdkafka sends again after a timeout is known by its cause
    resent = F.coalesce(F.col("whole.cause") == "client-resend-after-error", F.lit(False)) & timed_out
    if check in _LOST:
        excuse = F.when(elected, ELECTION).when(lost, DISCONNECT)
    elif check == _AT_OFFSETS:
        excuse = F.when(elected, ELECTION)
    else:
        late = F.col(UNANSWERED).isNotNull()
        excuse = F.when(vanished, ELECTION).when(resent, TIMEOUT).when(late, UNANSWERED)
        excuse = excuse.when(retried, RETRY).when(timed_out, TIMEOUT).when(F.col(RETURNED).isNotNull(), RETURNED)
    event = reduce(
        lambda column, kind: column.when(F.col("excuse") == kind, F.col(kind)),
        (DISCONNECT, RETRY, TIMEOUT, UNANSWERED, RETURNED),
        F.when(F.col("excuse") == ELECTION, F.col(ELECTION)),
    )
    return parts.withColumn("excuse", excuse).withColumn("event", event)


def _within_bounds(parts: DataFrame, check: str, key: list[str]) -> DataFrame:
    """The same, without the excuse of events that would excuse more than they can have done.

    Of a value that stands, or was read, at several offsets each one but the first takes an attempt to send a record.
    Of lost values each stretch between values that stand takes a connection. So does each of the fewest parts of what
    is late of which each is in order by itself.
    """
    offsets = F.size(F.array_union("claimed", "stands"))
    records = F.col("values") * (F.greatest(offsets - 1, F.lit(1)) if check in _COPIED else F.lit(1))
    bout = Window.partitionBy(*key, "excuse", F.col("event.bout"))
    stretches = F.size(F.collect_set("stretch").over(bout))
    at = F.col("whole.offset") + F.col("sequence") - F.col("whole.sequence")
    late = F.when(F.col("excuse") == UNANSWERED, F.struct("sequence", at.alias("at")))
    done = (
        F.when(F.col("excuse") == DISCONNECT, stretches)
        .when(F.col("excuse") == UNANSWERED, _in_order(F.sort_array(F.collect_list(late).over(bout))))
        .otherwise(F.sum(records).over(bout))
    )
    too_much = F.col("excuse").isin(RETRY, DISCONNECT, UNANSWERED) & (done > F.col("event.most"))
    judged = parts.withColumn("kept", F.coalesce(~too_much, F.lit(True)))
    return judged.withColumns({name: F.when(F.col("kept"), F.col(name)) for name in ("excuse", "event")}).drop("kept")


def _in_order(late: Column) -> Column:
    """Into how few parts these values fall, by their sequences, so that the positions of each part rise.

    Each value goes to the part that ends closest below it; where there is none, it begins another.
    """

    def with_next(ends: Column, value: Column) -> Column:
        at = value["at"]
        below = F.array_max(F.filter(ends, lambda end: end < at))
        return F.array_append(F.when(below.isNull(), ends).otherwise(F.array_remove(ends, below)), at)

    return F.size(F.aggregate(late, F.array().cast("array<bigint>"), with_next))


def _result(parts: DataFrame, step: Column, count: Column, size: Column, detail: Column | None = None) -> DataFrame:
    return parts.select(
        "place",
        F.col("whole.cause").alias("cause"),
        "stream",
        (F.col("whole.sequence") + step).alias("sequence"),
        (F.col("whole.offset") + step).alias("offset"),
        count.cast("bigint").alias("count"),
        size.cast("bigint").alias("size"),
        (F.col("whole.detail") if detail is None else detail).alias("detail"),
        "excuse",
        "event",
        step.cast("bigint").alias("step"),
    )
