"""The shape of an event that may excuse an anomaly, and what all kinds of events are made of. Judges nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.evidence.fault_kinds import UNCLEAN_ORDER
from verifier.evidence.run_model import RunModel, RunSettings
from verifier.witness.witness import SLACK_NS, Witness, WitnessedElection

#: Clients report events late: a value counts as outstanding at an event if it was so within this time of it.
OUTSTANDING_NS = 1_000_000_000

#: The fields of ``event``; ``at_ns`` comes first, so that the least of several is the earliest. A ``bout`` is a group
#: of events that are counted together: retries whose ranges overlap, or lost connections or abandoned sends whose times
#: overlap. ``most`` is how many records or connections the bout has, and so how much it can excuse.
EVENT = (
    "struct<at_ns:bigint,epoch:int,start_offset:bigint,first:bigint,last:bigint,text:string,bout:bigint,most:bigint>"
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What decides which events of one run may excuse anything: its settings, and what the harness saw."""

    settings: RunSettings
    witness: Witness
    #: Whether the run was asked to have replicas from outside the ISR elected (``elect-unclean``).
    by_order: bool = False

    @classmethod
    def of(cls, run: RunModel, witness: Witness) -> Grounds:
        """Those of this run."""
        return cls(run.settings, witness, UNCLEAN_ORDER in run.faults_requested)

    @property
    def by_order_alone(self) -> bool:
        """Whether nothing but such an order lets an election cut off what was acknowledged."""
        settings = self.settings
        return self.by_order and settings.acks == "all" and not settings.unclean_leader_election

    def is_unclean(self, topic: str, partition: int) -> bool:
        """Whether an election of this partition may have cut off what was committed."""
        ordered = self.by_order and (topic, partition) in self.witness.ordered_from
        return self.settings.unclean_leader_election or ordered

    def bounded(self, topic: str, partition: int, election: WitnessedElection) -> WitnessedElection:
        """The same election, which excuses nothing that was acknowledged after the fault of an order was over.

        Every replica was in the ISR by then, and what is acknowledged by all of them is on all.
        """
        until_ns = self.witness.ordered_until.get((topic, partition))
        if not self.by_order_alone or until_ns is None:
            return election
        return election._replace(until_ns=min(election.until_ns, until_ns + SLACK_NS))

    def counts(self, topic: str, partition: int, election: WitnessedElection, gone_ns: int | None = None) -> bool:
        """Whether this election may excuse anything: where it takes an order, from then on until its fault was over.

        ``gone_ns``: when the epoch that stands before this one had not yet been replaced. Of an ordered election whose
        epoch left nothing in the log, that is what tells: the next one excuses in its place.
        """
        place = topic, partition
        from_ns, until_ns = (times.get(place) for times in (self.witness.ordered_from, self.witness.ordered_until))
        before_ns = min(each for each in (gone_ns, election.before_ns) if each is not None)
        is_ordered = from_ns is not None and election.about_ns >= from_ns
        is_over = until_ns is not None and before_ns > until_ns
        return not self.by_order_alone or (is_ordered and not is_over)


def told(history: DataFrame) -> DataFrame:
    """What producers and live readers were told, with offsets where there are any.

    Sentinels are left out: they are sent with acks=all.
    """
    sends, polls = F.col("f") == "send", (F.col("f") == "poll") & (F.col("phase") == "load")
    known = history.filter((sends | polls) & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed())
    return known.select(
        "place", "stream", "f", "first_sequence", "last_sequence", "invoke_ns", "complete_ns",
        F.when(F.col("first_offset") >= 0, F.col("first_offset")).alias("first_offset"),
    )  # fmt: skip


def event(
    at_ns: Column,
    epoch: Column | None = None,
    start_offset: Column | None = None,
    *,
    first: Column | None = None,
    last: Column | None = None,
    text: Column | None = None,
    bout: Column | None = None,
    most: Column | None = None,
) -> Column:
    """The column ``event``: what is not given is null."""
    values = (at_ns, epoch, start_offset, first, last, text, bout, most)
    fields = zip(values, EVENT.removeprefix("struct<").removesuffix(">").split(","), strict=True)
    parts = [(F.lit(None) if value is None else value, *field.split(":")) for value, field in fields]
    return F.struct(*(value.cast(kind).alias(name) for value, name, kind in parts)).alias("event")


def outstanding(invoked_ns: Column, told_ns: Column, at_ns: Column) -> Column:
    """Whether a send was outstanding at the time of an event, as its client reported it."""
    return (invoked_ns <= at_ns + OUTSTANDING_NS) & (told_ns >= at_ns - OUTSTANDING_NS)


def in_bouts(frame: DataFrame, first: Column, last: Column) -> DataFrame:
    """The same rows with ``bout``, a number that rows of one place and stream share if their ranges overlap."""
    order = Window.partitionBy("place", "stream").orderBy("begins", "ends")
    before = F.max("ends").over(order.rowsBetween(Window.unboundedPreceding, -1))
    apart = F.when(F.coalesce(F.col("begins") <= before, F.lit(False)), 0).otherwise(1)
    so_far = F.sum("apart").over(order.rowsBetween(Window.unboundedPreceding, 0))
    numbered = frame.withColumns({"begins": first, "ends": last}).withColumn("apart", apart)
    return numbered.withColumn("bout", so_far).drop("begins", "ends", "apart")


def of_bout() -> WindowSpec:
    """All rows of one bout."""
    return Window.partitionBy("place", "stream", "bout")


def ranges(frame: DataFrame) -> DataFrame:
    """Stretches of sequences, whatever the offset."""
    return frame.select(
        "place", "stream", F.col("first_sequence").alias("sequence"), F.lit(None).cast("bigint").alias("offset"),
        (F.col("last_sequence") - F.col("first_sequence") + 1).alias("values"), "event",
    )  # fmt: skip
