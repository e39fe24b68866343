"""Which event in the evidence excuses which anomalous value. Owns the questions to Spark.

``verifier.excuses.expectation`` says what the settings permit; ``verifier.excuses.events`` makes the events.
Each event is a stretch of sequences of one stream:

- ``election``: an acknowledgement that was cut off by an election that the conductor saw. Its offset is at or above the
  start of the new epoch, and no further up than a log can have reached. Its time is near the election's, and its stream
  has nothing up to it in the new epoch. An acknowledgement without an offset (acks=0) comes, in its stream, after the
  last record of an earlier epoch.
- ``disconnect``: an acknowledgement without an offset that was in transit when its own client lost a connection. It was
  sent about then (``CONNECTION_NS``); or after the beginning of a fault that held back requests to the leader and was
  still active then; or shortly before its client was closed (``CLOSED_NS``). A connection delivers in order, so each
  lost connection takes one stretch of a stream with it. Losses whose times overlap are counted together: if they would
  excuse more stretches than connections were lost, they excuse none.
- ``retry``: sequences that the client resent, or may have resent, before it knew their outcome. Retries whose ranges
  overlap are counted together: if they would excuse more copies than the failed attempts had records, they excuse none.
  An error that a broker returns before it stores anything excuses no copy.
- ``timeout``: sequences that were outstanding when a delivery of their stream timed out, give or take
  ``OUTSTANDING_NS``.
- ``refusal``: copies under a raised producer epoch, of values that an attempt may have stored before a later batch was
  refused as out of order (``verifier.excuses.refusals``). They are counted together as retries are.
- ``unanswered``: sequences whose outcome their client never learned, and which were in transit when it lost a
  connection, if the settings let them arrive late (``verifier.excuses.late``). A connection delivers in order. Sends
  whose times overlap are counted together: if their late values need more connections than were lost, none is excused.
- ``returned``: acknowledged sequences that were in transit while their leader was replaced and came back, and that are
  in the later epoch of that leader (``verifier.excuses.late``).

Anomalies of polls and batch headers cannot be traced to one value: see ``verifier.excuses.by_partition``.

A lost value is excused only if all of its acknowledgements are; an offset, only if everything that contradicts the log
there is. If an anomaly is excused only in part, it is split, and its parts are counted separately.

A worked example (``claims.cut``). Sequences 0 to 9 of a stream were acknowledged at offsets 0 to 9. The log has 0 to 3
and then other values; an election cut off everything from offset 6 on. ``lost-write`` found one anomaly: 6 values from
sequence 4 on. Three rows of the stream go into ``cut``, each with its first sequence and its length:

    anomaly (4, 6)      claim of an acknowledgement (0, 10)      election (6, 4)

They begin or end at 0, 4, 6 and 10, so there are three pieces: 0 to 3 (the claim alone), 4 and 5 (claim and anomaly), 6
to 9 (all three). A piece without an anomaly is dropped. The anomaly is left in two parts: sequence 4, 2 values, not
excused; and sequence 6, 4 values, at ``step`` 2 of the original anomaly, excused by the election.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from verifier.claims import ACK, LOG, READ, cut, pieces
from verifier.excuses.by_partition import by_partition, unexcused
from verifier.excuses.event_rows import EVENT
from verifier.excuses.events import COPIED, Events
from verifier.excuses.expectation import DISCONNECT, ELECTION, REFUSAL, RETRY, RETURNED, TIMEOUT, UNANSWERED
from verifier.excuses.late import in_order
from verifier.tables import Tables

#: The identity of a claim: by how much its offset is ahead of its sequence; this one if its offset is unknown.
NO_OFFSET = -(2**62)

_LOST = ("lost-write", "log-gap")
_AT_OFFSETS = "inconsistent-offsets"
_COPIED, _MOVED = ("duplicate", "log-duplicate"), ("nonmonotonic-send", "log-reorder")
_REPEATED = (*_COPIED, *_MOVED)
_CLAIM, _STANDS = "claim", "log"
#: By the kind of event: the checks whose anomalies it may excuse.
_EXCUSED = {
    ELECTION: (*_LOST, *_REPEATED),
    DISCONNECT: _LOST,
    COPIED: _COPIED,
    RETRY: _MOVED,
    TIMEOUT: _REPEATED,
    REFUSAL: _COPIED,
    UNANSWERED: _MOVED,
    RETURNED: _MOVED,
}
#: The columns of the original anomaly that each of its pieces keeps.
_WHOLE = {
    "cause": "string", "sequence": "bigint", "offset": "bigint", "count": "bigint", "size": "bigint", "detail": "string"
}  # fmt: skip


class Excuses:
    """The events of all runs that are judged together. Nothing is asked before something needs to be excused."""

    def __init__(self, tables: Tables, events: Events) -> None:
        self._tables = tables
        self._source = events

    def split(self, checks: Collection[str], found: DataFrame) -> DataFrame:
        """The anomalies of these checks, by ``check``, with ``excuse`` (null: none), its ``event``, and ``step``.

        ``step``: how far into the original anomaly this part begins. An anomaly of values that has no stream or no
        sequence is never excused; anomalies of polls and headers are judged by partition. Checks of one kind are judged
        together, so that Spark plans their query once.
        """
        by_sequence = [name for name in (*_LOST, *_REPEATED) if name in checks]
        others = [name for name in checks if name not in (*by_sequence, _AT_OFFSETS)]
        parts = []
        if by_sequence:
            own = found.filter(F.col("check").isin(by_sequence))
            judgeable = F.col("stream").isNotNull() & F.col("sequence").isNotNull()
            parts += [self._by_sequence(by_sequence, own.filter(judgeable)), unexcused(own.filter(~judgeable), "check")]
        if _AT_OFFSETS in checks:
            parts.append(self._at_offsets(found.filter(F.col("check") == _AT_OFFSETS)))
        if others:
            own = found.filter(F.col("check").isin(others))
            parts.append(by_partition(others, own, self._tables, self._source))
        return reduce(DataFrame.unionByName, parts)

    def _by_sequence(self, checks: Sequence[str], found: DataFrame) -> DataFrame:
        key = ["check", "place", "stream"]
        length = F.when(F.col("check") == "log-gap", F.col("size")).otherwise(F.col("count"))
        claims = self._tables.claims.filter(F.col("stream").isNotNull())
        said = [
            (checks, _rows(claims.filter(F.col("source") == LOG), "sequence", F.col("values"), _STANDS)),
            (_LOST, _rows(claims.filter(F.col("source") == ACK), "sequence", F.col("values"), _CLAIM)),
            (_REPEATED, _rows(claims.filter(F.col("source") == READ), "sequence", F.col("values"), _CLAIM)),
            *((whose, self._events(kind, "sequence")) for kind, whose in _EXCUSED.items() if set(whose) & set(checks)),
        ]
        rows = reduce(
            DataFrame.unionByName,
            (frame.withColumn("whose", F.array(*(F.lit(name) for name in whose))) for whose, frame in said),
        )
        concerned = F.broadcast(found.select(*key).distinct())
        rows = rows.join(concerned, ["place", "stream"]).filter(F.array_contains("whose", F.col("check"))).drop("whose")
        anomalies = _rows(found, "sequence", length, whole=F.struct(*_WHOLE), check=True)
        together = anomalies.unionByName(rows)
        parts = _within_bounds(_judged(_pieces(together, key, "sequence")), key)
        # a gap is one anomaly however long it is: its excused part is one, and so is the rest
        is_gap = F.col("check") == "log-gap"
        grouped = parts.groupBy(*key, "whole", "excuse", F.when(~is_gap, F.col("sequence")).alias("part")).agg(
            F.min("sequence").alias("sequence"),
            F.sum("values").alias("values"),
            F.min_by("event", "sequence").alias("event"),
            F.max(F.col("sequence") + F.col("values") - 1).alias("last_sequence"),
        )
        return _result(
            grouped,
            F.col("sequence") - F.col("whole.sequence"),
            F.when(is_gap, F.lit(1)).otherwise(F.col("values")),
            F.when(is_gap, F.col("values")).otherwise(F.col("whole.size")),
            F.when(is_gap, F.to_json(F.struct("last_sequence"))).otherwise(F.col("whole.detail")),
        )

    def _at_offsets(self, found: DataFrame) -> DataFrame:
        key = ["place"]
        concerned = F.broadcast(found.select(*key).distinct())
        claims = self._tables.claims.filter(F.col("offset").isNotNull() & F.col("stream").isNotNull())
        rows = [
            _rows(found.drop("stream"), "offset", F.col("count"), whole=F.struct(*_WHOLE)),
            _rows(claims.filter(F.col("source").isin(ACK, READ)), "offset", F.col("values"), _CLAIM),
            _rows(claims.filter(F.col("source") == LOG), "offset", F.col("values"), _STANDS),
            self._events(ELECTION, "offset"),
        ]
        together = reduce(DataFrame.unionByName, rows).join(concerned, key, "left_semi")
        parts = _pieces(together, key, "offset").withColumn("check", F.lit(_AT_OFFSETS))
        parts = parts.withColumn("stream", F.lit(None).cast("bigint"))
        step = F.col("offset") - F.col("whole.offset")
        return _result(_judged(parts), step, F.col("values"), F.col("whole.size"), F.col("whole.detail"))

    def _events(self, kind: str, first: str) -> DataFrame:
        frame = self._source.of(kind)
        if first == "offset":
            frame = frame.filter(F.col("offset").isNotNull())
        return _rows(frame, first, F.col("values"), RETRY if kind == COPIED else kind, event=F.col("event"))


def _rows(
    frame: DataFrame,
    first: str,
    length: Column,
    kind: str | None = None,
    *,
    whole: Column | None = None,
    event: Column | None = None,
    check: bool = False,
) -> DataFrame:
    """Anomalies (``whole``), claims and events in the one shape that is cut into pieces.

    ``who`` says which claim it is, or which claim an event excuses.
    """
    anomaly = f"struct<{','.join(f'{name}:{kind}' for name, kind in _WHOLE.items())}>"
    shift = F.coalesce(F.col("offset") - F.col("sequence"), F.lit(NO_OFFSET)).cast("string")
    who = shift if first == "sequence" else F.concat_ws("/", "stream", shift)
    keys = [*(["check"] if check else []), "place", *(["stream"] if first == "sequence" else [])]
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
    """The parts of anomalies, with the claims and events of each. Parts share a ``stretch`` if no value between them is
    in the log."""

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
            for kind in (ELECTION, DISCONNECT, RETRY, TIMEOUT, REFUSAL, UNANSWERED, RETURNED)
        ),
    )
    return parts.withColumn("stretch", F.coalesce(stands, F.lit(-1))).filter(F.col("whole").isNotNull())


def _judged(parts: DataFrame) -> DataFrame:
    """The pieces with ``excuse`` and ``event``: the first kind of event that applies, of those that fit the check."""
    strays = F.array_except("claimed", "stands")

    def all_in(excused: Column) -> Column:
        return (F.size(strays) > 0) & (F.size(F.array_except(strays, excused)) == 0)

    def is_known(kind: str) -> Column:
        return F.col(kind).isNotNull()

    elected = all_in(F.col(f"who_{ELECTION}"))
    lost = all_in(F.array_union(f"who_{ELECTION}", f"who_{DISCONNECT}"))
    vanished = (F.col("whole.cause") == "vanished") & elected
    # copies that librdkafka made after a timeout, or after a refusal, have a cause of their own
    resent = F.coalesce(F.col("whole.cause") == "client-resend-after-error", F.lit(False))
    of_lost = F.when(elected, ELECTION).when(lost, DISCONNECT)
    of_repeated = F.when(vanished, ELECTION)
    for kind in (TIMEOUT, REFUSAL):
        of_repeated = of_repeated.when(resent & is_known(kind), kind)
    for kind in (UNANSWERED, RETRY, TIMEOUT, RETURNED):
        of_repeated = of_repeated.when(is_known(kind), kind)
    excuse = F.when(F.col("check").isin(*_LOST), of_lost).when(F.col("check").isin(*_REPEATED), of_repeated)
    excuse = excuse.when((F.col("check") == _AT_OFFSETS) & elected, ELECTION)
    event = reduce(
        lambda column, kind: column.when(F.col("excuse") == kind, F.col(kind)),
        (DISCONNECT, RETRY, TIMEOUT, REFUSAL, UNANSWERED, RETURNED),
        F.when(F.col("excuse") == ELECTION, F.col(ELECTION)),
    )
    return parts.withColumn("excuse", excuse).withColumn("event", event)


def _within_bounds(parts: DataFrame, key: list[str]) -> DataFrame:
    """The same, without excuses by events that would then have caused more than they can have.

    If a value is in the log, or was read, at several offsets, each of these but the first took an attempt to send it.
    Each stretch of lost values between values in the log took a lost connection. Late values are divided into as few
    parts as possible, each of them in order, and each part took a lost connection.
    """
    copies = F.greatest(F.size(F.array_union("claimed", "stands")) - 1, F.lit(1))
    records = F.col("values") * F.when(F.col("check").isin(*_COPIED), copies).otherwise(1)
    bout = Window.partitionBy(*key, "excuse", F.col("event.bout"))
    stretches = F.size(F.collect_set("stretch").over(bout))
    at = F.col("whole.offset") + F.col("sequence") - F.col("whole.sequence")
    late = F.when(F.col("excuse") == UNANSWERED, F.struct("sequence", at.alias("at")))
    done = (
        F.when(F.col("excuse") == DISCONNECT, stretches)
        .when(F.col("excuse") == UNANSWERED, in_order(F.sort_array(F.collect_list(late).over(bout))))
        .otherwise(F.sum(records).over(bout))
    )
    too_much = F.col("excuse").isin(RETRY, REFUSAL, DISCONNECT, UNANSWERED) & (done > F.col("event.most"))
    judged = parts.withColumn("kept", F.coalesce(~too_much, F.lit(True)))
    return judged.withColumns({name: F.when(F.col("kept"), F.col(name)) for name in ("excuse", "event")}).drop("kept")


def _result(parts: DataFrame, step: Column, count: Column, size: Column, detail: Column) -> DataFrame:
    return parts.select(
        "check",
        "place",
        F.col("whole.cause").alias("cause"),
        "stream",
        (F.col("whole.sequence") + step).alias("sequence"),
        (F.col("whole.offset") + step).alias("offset"),
        count.cast("bigint").alias("count"),
        size.cast("bigint").alias("size"),
        detail.alias("detail"),
        "excuse",
        "event",
        step.cast("bigint").alias("step"),
    )
