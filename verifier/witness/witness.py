"""What the harness itself saw: which broker led when, and which brokers it broke. This is independent of the logs.

Reads ``leaders.jsonl`` (what the conductor saw at each look) and ``faults.jsonl``; the rest is pure. Owns the limits:
how far an acknowledgement may be from an election that truncated it, and how far back a lost or closed connection
counts.

A worked example. The conductor saw epoch 4 of a partition at 10.0 s and epoch 5 at 10.3 s, so epoch 5 began in between.
A record below its start was sent at 10.1 s, and a record in it was acknowledged at 10.2 s, so it began between these
two times. With a ``replica.lag.time.max.ms`` of 1000, a session of 1 s and a ``SLACK_NS`` of 3 s, it can have truncated
what was acknowledged from 10.1 - 1 - 1.5 - 3 = 4.6 s to 10.2 + 3 = 13.2 s. If the old leader was isolated from 9 s to
20 s, it did not learn about epoch 5 before 20 s: the limits are then 9 - 1.5 - 3 = 4.5 s and 20 + 3 = 23 s. If the old
leader was killed, or another broker was isolated, the upper limit is 13.2 s: no broker was left that could acknowledge
without knowing about epoch 5.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.evidence.fault_kinds import (
    FAILING_DISKS,
    HALTING,
    KILLING_MACHINES,
    KILLING_SEVERAL,
    ON_THE_LOAD,
)
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunSettings
from verifier.evidence.units import ns_of_ms
from verifier.witness.effectiveness import Injected, fault_record
from verifier.witness.leaderships import Leadership, Sighting, leaderships
from verifier.witness.unclean_orders import orders_over, unclean_orders

#: How late a client may learn of an acknowledgement, and the conductor of an election, on a busy machine.
SLACK_NS = 3_000_000_000
#: Anything acknowledged within this time before or after its client recorded a lost connection may have been lost with
#: it. A client records the loss within half a second (librdkafka's statistics), or later if its process is stalled;
#: data in transit on a connection that nothing holds up arrives within milliseconds.
CONNECTION_NS = 2_000_000_000

#: Anything sent within this time before its own client was closed may have been lost with the connections that the
#: client closed. The load waits for a second before it closes a client.
CLOSED_NS = 500_000_000

#: These end a connection immediately, or affect only what brokers send: they hold back nothing that a producer sent.
_HOLD_NOTHING = frozenset(
    (
        *("reset", "drop-response", "kill-leader", "kill-follower", "kill-controller", "rolling-restart"),
        # What these hold is lost with its connection, and so nothing is late.
        *("kill-transaction-coordinator", "kill-group-coordinator", "drop-end-txn-response"),
        *("repeat-end-txn", "hold-markers", "delay-markers", "kill-and-wipe"),
        *("refuse", "flapping", "duplicate-request", "cut-frame", "close-on"),
        *KILLING_MACHINES,
        *KILLING_SEVERAL,
        *FAILING_DISKS,
        *HALTING,
    )
)

#: Besides those named ``kill-...``.
_END_BROKERS = KILLING_MACHINES | KILLING_SEVERAL | FAILING_DISKS | HALTING | {"rolling-restart"}

#: How the target of a fault names the brokers, or the links from producers to brokers, that it hits.
_BROKERS = re.compile(r"\bbrokers? (\d+(?:, \d+)*)")
_PRODUCERS_LINK = re.compile(r"\bproducers-b(\d+)")
_BROKERS_LINK = re.compile(r"\bb(\d+)-(?:b(\d+)|zk)\b")


class Span(NamedTuple):
    """A fault, from its injection to the end of its healing.

    ``brokers``: the brokers whose links to producers it affected. ``others``: the brokers whose links to other brokers
    or ZooKeeper it affected.
    """

    fault: str
    target: str
    start_ns: int
    end_ns: int
    brokers: frozenset[int]
    others: frozenset[int] = frozenset()

    @property
    def holds_requests(self) -> bool:
        """Whether it may hold back for long what producers send."""
        return self.fault not in _HOLD_NOTHING and "responses" not in self.target

    def blinded(self, leader: int | None, begin_ns: int, end_ns: int) -> bool:
        """Whether it hit the broker that led between these times, and left it alive. An unrecorded leader may be any
        broker."""
        alive = not self.fault.startswith("kill-") and self.fault not in _END_BROKERS
        hit = leader in self.brokers | self.others or (leader is None and bool(self.brokers | self.others))
        return alive and hit and self.start_ns <= end_ns and self.end_ns >= begin_ns


class EpochStart(NamedTuple):
    """What the log and the acknowledgements say about one leader epoch.

    ``earliest_ns``: a record before the epoch was not sent before this time. ``latest_ns``: a record in the epoch, or
    after it, was acknowledged at this time. ``end_offset``: no log that was truncated at the start of the epoch can
    have reached this offset (``verifier.excuses.elections``).
    """

    epoch: int
    start_offset: int
    end_offset: int
    earliest_ns: int | None
    latest_ns: int | None


class WitnessedElection(NamedTuple):
    """An epoch that began at about ``about_ns``, and what it can have truncated.

    That is anything acknowledged between ``from_ns`` and ``until_ns``, at an offset from ``start_offset`` up to, but
    not including, ``end_offset``. At ``before_ns``, the epoch had not begun.
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
    """``sightings`` by (topic, partition), in order; ``spans``: the faults, each from injection to heal."""

    sightings: Mapping[tuple[str, int], Sequence[Sighting]] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    #: When a fault first ordered an unclean election in a partition (``verifier.witness.unclean_orders``).
    ordered_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    #: When the last fault that ordered one there was over.
    ordered_until: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def first_after(self, topic: str, partition: int, epoch: int) -> int | None:
        """The conductor's last look before it saw a later epoch than this one; None if it never saw one."""
        seen = self.sightings.get((topic, partition), ())
        return next((each.before_ns for each in seen if each.epoch > epoch), None)

    def led(self, topic: str, partition: int) -> list[Leadership]:
        """The epochs of this partition that were seen."""
        return leaderships(self.sightings.get((topic, partition), ()))

    def held(self, topic: str, partition: int) -> list[Span]:
        """The faults that affected links between producers and the broker that led this partition at the time.

        A broker leads from the last look that saw another leader before it, to the first look that sees another one.
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
        """Whether a record in this epoch, or after it, was acknowledged long before the epoch was seen to begin.

        Each look asks every broker, and a new leader knows its epoch, so looks do not lag behind that far.
        """
        seen = self.sightings.get((topic, partition), ())
        after = next((each for each in seen if each.epoch >= start.epoch), None)
        if after is None or after.before_ns is None or start.latest_ns is None:
            return False
        return start.latest_ns < after.before_ns - SLACK_NS

    def election(
        self, topic: str, partition: int, start: EpochStart, settings: RunSettings
    ) -> WitnessedElection | None:
        """The election that began this epoch; None if the conductor did not see it, since the log alone proves nothing.

        Acknowledgements narrow the time between two looks; acknowledgements that contradict the looks do not change it.
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
        # a follower may lag this far and still be elected, and a leader may be dead this long before the election
        behind_ns = settings.replica_lag_time_max_ms * 1_500_000 + SLACK_NS
        dead_ns = ns_of_ms(settings.session_timeout_ms)
        from_ns, until_ns = earliest_ns - dead_ns - behind_ns, latest_ns + SLACK_NS
        former = [each for each in leaderships(seen) if each.epoch < after.epoch]
        for span in self.spans:
            if span.fault in ON_THE_LOAD:
                continue  # a cluster elects without its clients
            if span.start_ns > latest_ns + SLACK_NS or span.end_ns < earliest_ns - dead_ns - SLACK_NS:
                continue
            # it may have delayed the election, no matter which broker it hit: a dead controller elects no leader
            from_ns = min(from_ns, span.start_ns - behind_ns)
            # a leader that is cut off or paused does not know about its successor, and acknowledges until it is healed
            if any(span.blinded(each.leader, each.begin_ns, each.end_ns) for each in former):
                until_ns = max(until_ns, span.end_ns + SLACK_NS)
        return WitnessedElection(
            start.epoch, start.start_offset, start.end_offset, latest_ns, from_ns, until_ns, earliest_ns
        )


def witness(directory: RunDirectory, topics: Sequence[str]) -> Witness:
    """What the conductor recorded about these topics.

    An unreadable file provides nothing and excuses nothing; ``verifier.closing.closing`` reports it.
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
    return Witness(seen, spans(happened), unclean_orders(happened), orders_over(happened))


def sightings(entries: Iterable[Mapping[str, object]], topics: Sequence[str]) -> dict[tuple[str, int], list[Sighting]]:
    """The epochs of each partition, each as it was first seen. Raises ``ValueError``, ``TypeError``, ``KeyError``.

    An entry without a topic is about the only topic of the run.
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
            raise TypeError(f"not a sighting of a leader: {entry!r:.200}")
        known, leader = found[topic, partition], entry.get("leader")
        if not (isinstance(before_ns, int) or (before_ns is None and not known)):
            raise TypeError(f"only the first look at a partition has none before it: {entry!r:.200}")
        if known and epoch < known[-1].epoch:
            # the conductor records only the newest epoch, so this is not its record
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
    """The injected faults; one without an end lasted until the end of the run."""
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
