"""What the harness itself saw: who led when, and which brokers it broke. This witness is independent of the logs.

Reads ``leaders.jsonl`` (the conductor's own looks) and ``faults.jsonl``; the rest is pure. It sets the limits: how far
from an election an acknowledgement may lie to have been cut off by it, and how far back a connection counts that was
broken, or closed.

A worked example. The looks at 10.0 s and 10.3 s saw epoch 4 and epoch 5 of a partition: epoch 5 began in between. A
record that is below its start was sent at 10.1 s, one that is in it was acknowledged at 10.2 s: it began
between these two. With ``replica.lag.time.max.ms`` 1000, a session of 1 s and ``SLACK_NS`` 3 s it can have cut off what
was acknowledged from 10.1 - 1 - 1.5 - 3 = 4.6 s to 10.2 + 3 = 13.2 s. If the old leader was isolated from 9 s to 20 s,
it did not hear of epoch 5 before 20 s: then the reach is 9 - 1.5 - 3 = 4.5 s to 20 + 3 = 23 s. Had it been killed, or
another broker isolated, the reach would end at 13.2 s: no one was left who could acknowledge and know no better.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.effectiveness import Injected, fault_record
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunSettings
from verifier.leaderships import Leadership, Sighting, leaderships

#: How late a client may learn of an acknowledgement, and the conductor of an election, on a busy machine.
SLACK_NS = 3_000_000_000
#: What was acknowledged within this time before or after its client noted a lost connection may have been lost with
#: it. A client notes it within half a second (librdkafka's statistics), or later if its process stands still;
#: what is under way on a connection that nothing holds up arrives within milliseconds.
CONNECTION_NS = 2_000_000_000

#: What was sent within this time before its own client was closed may have been lost with the connections that it
#: closed. The load waits for a second before it closes a client.
CLOSED_NS = 500_000_000

#: These end a connection at once, or touch only what brokers send: nothing that a producer has sent waits under them.
_HOLD_NOTHING = frozenset(
    ("reset", "drop-response", "kill-leader", "kill-follower", "kill-controller", "rolling-restart")
)

#: How the target of a fault names the brokers, or the links from producers to brokers, that it hits.
_BROKERS = re.compile(r"\bbrokers? (\d+(?:, \d+)*)")
_PRODUCERS_LINK = re.compile(r"\bproducers-b(\d+)")
_BROKERS_LINK = re.compile(r"\bb(\d+)-(?:b(\d+)|zk)\b")


class Span(NamedTuple):
    """A fault from its injection to the end of its healing; ``brokers``: those between which and producers it stood.

    ``others``: those between which and brokers or ZooKeeper it stood.
    """

    fault: str
    target: str
    start_ns: int
    end_ns: int
    brokers: frozenset[int]
    others: frozenset[int] = frozenset()

    @property
    def holds_requests(self) -> bool:
        """Whether what producers send may wait for long while it stands."""
        return self.fault not in _HOLD_NOTHING and "responses" not in self.target

    def blinded(self, leader: int | None, begin_ns: int, end_ns: int) -> bool:
        """Whether it hit, and left alive, who led within these times. Who is not recorded may be any broker."""
        alive = not self.fault.startswith("kill-") and self.fault != "rolling-restart"
        hit = leader in self.brokers | self.others or (leader is None and bool(self.brokers | self.others))
        return alive and hit and self.start_ns <= end_ns and self.end_ns >= begin_ns


class EpochStart(NamedTuple):
    """What the log and the acknowledgements say about one leader epoch.

    ``earliest_ns``: a record that stands before it was not sent before then; ``latest_ns``: one that is in it, or
    after it, was acknowledged then. ``end_offset``: no log that was cut off at its start can have reached up to there
    (``verifier.elections``).
    """

    epoch: int
    start_offset: int
    end_offset: int
    earliest_ns: int | None
    latest_ns: int | None


class WitnessedElection(NamedTuple):
    """An epoch began about ``about_ns``, and what it can have cut off.

    That is what was acknowledged within these times, at an offset from ``start_offset`` on and below ``end_offset``.
    At ``before_ns`` it had not begun.
    """

    epoch: int
    start_offset: int
    end_offset: int
    about_ns: int
    from_ns: int
    until_ns: int
    before_ns: int


@dataclass(frozen=True, slots=True)
class Witness:
    """``sightings`` by (topic, partition), in their order; ``spans``: the faults, each from injection to heal."""

    sightings: Mapping[tuple[str, int], Sequence[Sighting]] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()

    def first_after(self, topic: str, partition: int, epoch: int) -> int | None:
        """When the conductor last looked before it saw a later epoch than this one; None if it never did."""
        seen = self.sightings.get((topic, partition), ())
        return next((each.before_ns for each in seen if each.epoch > epoch), None)

    def led(self, topic: str, partition: int) -> list[Leadership]:
        """The epochs of this partition that were seen."""
        return leaderships(self.sightings.get((topic, partition), ()))

    def held(self, topic: str, partition: int) -> list[Span]:
        """The faults that stood between producers and the broker that led this partition meanwhile.

        A leader begins to lead after the last look that saw another, and leads until the first look that does.
        """
        led = self.led(topic, partition)
        return [
            span
            for span in self.spans
            if span.holds_requests
            and any(
                each.leader in span.brokers and span.start_ns <= each.end_ns and span.end_ns >= each.begin_ns
                for each in led
            )
        ]

    def contradicts(self, topic: str, partition: int, start: EpochStart) -> bool:
        """Whether something is in this epoch, or after it, that was acknowledged long before it was seen to begin.

        Every broker is asked at each look, and a new leader knows its epoch: a look lags behind by less.
        """
        seen = self.sightings.get((topic, partition), ())
        after = next((each for each in seen if each.epoch >= start.epoch), None)
        if after is None or after.before_ns is None or start.latest_ns is None:
            return False
        return start.latest_ns < after.before_ns - SLACK_NS

    def election(
        self, topic: str, partition: int, start: EpochStart, settings: RunSettings
    ) -> WitnessedElection | None:
        """The election that began this epoch; None if the conductor saw none: the log alone is no witness.

        Acknowledgements narrow the time between two looks; those that contradict them do not move it.
        """
        seen = self.sightings.get((topic, partition), ())
        after = next((each for each in seen if each.epoch >= start.epoch), None)
        if after is None or after.before_ns is None:
            return None
        if self.contradicts(topic, partition, start):
            start = start._replace(latest_ns=None)
        latest_ns = min(after.time_ns, after.time_ns if start.latest_ns is None else start.latest_ns)
        earliest_ns = max(after.before_ns, after.before_ns if start.earliest_ns is None else start.earliest_ns)
        earliest_ns = min(earliest_ns, latest_ns)
        # a follower this far behind may still be elected, and a leader may be dead this long before another one is
        behind_ns = settings.replica_lag_time_max_ms * 1_500_000 + SLACK_NS
        dead_ns = settings.session_timeout_ms * 1_000_000
        from_ns, until_ns = earliest_ns - dead_ns - behind_ns, latest_ns + SLACK_NS
        former = [each for each in leaderships(seen) if each.epoch < after.epoch]
        for span in self.spans:
            if span.start_ns > latest_ns + SLACK_NS or span.end_ns < earliest_ns - dead_ns - SLACK_NS:
                continue
            # it may have kept the election back, whomever it hit: a dead controller elects no one
            from_ns = min(from_ns, span.start_ns - behind_ns)
            # a leader that is cut off or paused does not know of its successor, and acknowledges until it is healed
            if any(span.blinded(each.leader, each.begin_ns, each.end_ns) for each in former):
                until_ns = max(until_ns, span.end_ns + SLACK_NS)
        return WitnessedElection(
            start.epoch, start.start_offset, start.end_offset, latest_ns, from_ns, until_ns, earliest_ns
        )


def witness(directory: RunDirectory, topics: Sequence[str]) -> Witness:
    """What the conductor left of these topics.

    A file that cannot be read gives nothing and excuses nothing; ``verifier.closing`` says that it cannot be read.
    """
    seen: Mapping[tuple[str, int], Sequence[Sighting]]
    try:
        seen = sightings(directory.read_leaders(), topics)
    except (OSError, ValueError, TypeError, KeyError):
        seen = {}
    try:
        happened = fault_record(directory.read_faults(), 0).injected
    except (OSError, ValueError, TypeError):
        happened = ()
    return Witness(seen, spans(happened))


def sightings(entries: Iterable[Mapping[str, object]], topics: Sequence[str]) -> dict[tuple[str, int], list[Sighting]]:
    """The epochs of each partition, each when it was first seen. Raises ``ValueError``, ``TypeError``, ``KeyError``.

    An entry without a topic is about the only one of the run.
    """
    found: dict[tuple[str, int], list[Sighting]] = defaultdict(list)
    only = {"topic": topics[0]} if len(topics) == 1 else {}
    for entry in entries:
        topic, partition, epoch, time_ns, before_ns = (
            (only | dict(entry))[name] for name in ("topic", "partition", "leader_epoch", "time_ns", "before_ns")
        )
        if not (
            isinstance(topic, str)
            and isinstance(partition, int)
            and isinstance(epoch, int)
            and isinstance(time_ns, int)
        ):
            raise TypeError(f"no sighting of a leader: {entry!r:.200}")
        known, leader = found[topic, partition], entry.get("leader")
        if not (isinstance(before_ns, int) or (before_ns is None and not known)):
            raise TypeError(f"only the first look at a partition has none before it: {entry!r:.200}")
        if known and epoch < known[-1].epoch:
            # the conductor notes no epoch but the newest: this is not its record
            raise ValueError(f"{topic}-{partition} goes from leader epoch {known[-1].epoch} back to {epoch}")
        if known and epoch == known[-1].epoch and len(leaders := _named(known[-1].leader) | _named(leader)) > 1:
            raise ValueError(f"{topic}-{partition} has leaders {sorted(leaders)} in epoch {epoch}")
        if not known or epoch > known[-1].epoch:
            known.append(Sighting(epoch, before_ns, time_ns, leader if isinstance(leader, int) else None))
    return dict(found)


def _named(leader: object) -> set[int]:
    """A leader, unless none is known (None, or Kafka's -1)."""
    return {leader} if isinstance(leader, int) and leader >= 0 else set()


def spans(happened: Iterable[Injected]) -> tuple[Span, ...]:
    """The faults that were injected; one without an end lasted to the end of the run."""
    return tuple(
        Span(
            each.fault,
            each.target,
            each.start_ns,
            2**62 if each.end_ns is None else each.end_ns,
            _brokers(each.target),
            frozenset(int(end) for ends in _BROKERS_LINK.findall(each.target) for end in ends if end),
        )
        for each in happened
        if not each.skipped
    )


def _brokers(target: str) -> frozenset[int]:
    """``broker 2, leader of t-0``, ``brokers 1, 2, 3, one after the other``, ``producers-b1, requests only``."""
    named = [number for found in _BROKERS.findall(target) for number in found.split(", ")]
    return frozenset(map(int, [*named, *_PRODUCERS_LINK.findall(target)]))
