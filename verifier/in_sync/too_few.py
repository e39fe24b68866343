"""When a partition's only leader had fewer replicas in sync than ``min.insync.replicas``.

Owns these times; pure but for reading journals. Judges nothing (``verifier.checks.under_min_isr`` and
``watermark_under_min_isr``).

A leader writes a line to its journal when it has adopted an ISR that is too small (``under-min-isr``), and another one
when its ISR is large enough again or it no longer leads; each before it answers anyone after that. What the controller
decided earlier does not bind it: until it learns that the ISR shrank, it waits for all of the larger one. Its journal
does not say which other broker answers clients. So such a time begins only when no former leader can be left that does
not know that it was replaced, and ends when there may be a later leader. In case a line is missing, it also ends where
a controller's journal has a large enough ISR, or where the leader's journal shows a new start of the broker.

A worked example with ``min.insync.replicas`` 2. Broker 1 notes at 4.0 s that it is alone in the ISR of its epoch 3. The
conductor saw epoch 2 of broker 2 until 3.0 s, and epoch 3 from 3.2 s on. Broker 2 was cut off until 5.0 s, and may not
have known until then that it was replaced, so the time begins ``SLACK_NS`` (3 s) later, at 8.0 s. At 20.0 s the
conductor still saw epoch 3, and at 20.3 s epoch 4, so the time ends 3 s before 20.0 s.

The leader also notes its high watermark, and the offset at which its epoch begins. A former leader cannot have told
clients a watermark above that offset: the new leader's log has everything that was committed, unless an election was
unclean or a disk lost records. So no client can be told a watermark above both, unless this leader moves its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from verifier.evidence.fault_kinds import LOSING_RECORDS, ON_THE_LOAD
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.transactions.state_records import TopicPartition
from verifier.witness.leaderships import Sighting
from verifier.witness.witness import SLACK_NS, Span, Witness, witness

#: Events of the journals.
UNDER, OVER, CHANGED, NEW_LIFE = "under-min-isr", "under-min-isr-over", "partition-changed", "logs-loaded"
_NEVER = 2**62


class TooFew(NamedTuple):
    """From ``start_ns`` to ``end_ns`` this broker led the partition, no other one did, and ``isr`` was too small.

    ``told``: the highest watermark that this broker or a former leader may have told clients; None if not known.
    """

    place: TopicPartition
    broker: int
    leader_epoch: int
    isr: tuple[int, ...]
    wanted: int
    start_ns: int
    end_ns: int
    told: int | None = None

    @property
    def detail(self) -> dict[str, object]:
        """The ``detail`` of an anomaly at this time."""
        return {
            "broker": self.broker,
            "leader_epoch": self.leader_epoch,
            "isr": ", ".join(map(str, self.isr)),
            "wanted": self.wanted,
            "since_ns": self.start_ns,
        }


class IsrChange(NamedTuple):
    """A change of an ISR, from a controller's journal."""

    place: TopicPartition
    leader: int
    leader_epoch: int
    members: int
    time_ns: int


def too_few_in_sync(directory: RunDirectory, run: RunModel) -> list[TooFew]:
    """These times in a run's topics. If any journal cannot be read, which is doubted elsewhere, there are none."""
    topics = sorted(topic.name for topic in run.topics)
    try:
        journals = {broker: directory.read_journal(broker) for broker in directory.broker_ids()}
        noted = [each for broker, entries in journals.items() for each in noted_times(broker, entries)]
        changes = [each for entries in journals.values() for each in _changes(entries)]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return list(alone(noted, changes, witness(directory, topics), keeps=not run.may_elect_uncleanly))


def noted_times(broker: int, entries: Iterable[Mapping[str, object]]) -> Iterator[TooFew]:
    """The times according to the leader's own journal."""
    begun: dict[TopicPartition, TooFew] = {}
    for entry in entries:
        event = entry.get("event")
        if event not in (UNDER, OVER, NEW_LIFE):
            continue
        time_ns = _number(entry["monotonic_ns"])
        ended = list(begun) if event == NEW_LIFE else [_place(entry)]
        for place in ended:
            if place in begun:
                yield begun.pop(place)._replace(end_ns=time_ns)
        if event == UNDER:
            isr, wanted = _members(entry), _number(entry["min_insync_replicas"])
            place, epoch = _place(entry), _number(entry["leader_epoch"])
            begun[place] = TooFew(place, broker, epoch, isr, wanted, time_ns, _NEVER, _told(entry))
    yield from begun.values()


def _changes(entries: Iterable[Mapping[str, object]]) -> Iterator[IsrChange]:
    for entry in entries:
        if entry.get("event") == CHANGED:
            epoch, time_ns = _number(entry["leader_epoch"]), _number(entry["monotonic_ns"])
            yield IsrChange(_place(entry), _number(entry["leader"]), epoch, len(_members(entry)), time_ns)


def _told(entry: Mapping[str, object]) -> int | None:
    """None for brokers of an earlier version, which do not note it."""
    if "high_watermark" not in entry or "epoch_start_offset" not in entry:
        return None
    return max(_number(entry["high_watermark"]), _number(entry["epoch_start_offset"]))


def _place(entry: Mapping[str, object]) -> TopicPartition:
    return str(entry["topic"]), _number(entry["partition"])


def _members(entry: Mapping[str, object]) -> tuple[int, ...]:
    isr = entry["isr"]
    if not isinstance(isr, list):
        raise TypeError(f"not an ISR: {isr!r:.200}")
    return tuple(_number(each) for each in isr)


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"not a number: {value!r:.200}")
    return value


def alone(
    noted: Iterable[TooFew], changes: Sequence[IsrChange], seen: Witness, *, keeps: bool = True
) -> Iterator[TooFew]:
    """The same times, shortened so that no other broker can have led in them and the ISR cannot have grown.

    ``keeps``: no election cuts off committed records. Otherwise, or if a disk lost records, it is not known what
    clients were told in former epochs.
    """
    keeps &= not any(span.fault in LOSING_RECORDS for span in seen.spans)
    for each in noted:
        looks = seen.sightings.get(each.place, ())
        start_ns = _known_since(each, changes, looks, seen.spans)
        end_ns = min([each.end_ns, *_ends(each, changes, looks)])
        if start_ns is not None and start_ns < end_ns:
            is_known = keeps or looks[0].epoch == each.leader_epoch
            yield each._replace(start_ns=start_ns, end_ns=end_ns, told=each.told if is_known else None)


def _known_since(
    each: TooFew, changes: Sequence[IsrChange], looks: Sequence[Sighting], spans: Sequence[Span]
) -> int | None:
    """From when on every former leader knows that it was replaced; None if the conductor did not see this leader."""
    since = next((look for look in looks if look.epoch >= each.leader_epoch), None)
    if since is None or since.epoch != each.leader_epoch or since.leader not in (each.broker, None):
        return None
    # epochs that were too short for the conductor to see are in the controllers' journals
    led = {(look.epoch, look.leader) for look in looks}
    led |= {(change.leader_epoch, change.leader) for change in changes if change.place == each.place}
    former = range(looks[0].epoch, each.leader_epoch)
    if {(epoch, leader) for epoch, leader in led if epoch in former} == {(epoch, each.broker) for epoch in former}:
        return each.start_ns
    # no matter which broker the fault hit: a former leader that is cut off or paused learns nothing until it is healed
    unaware = [
        span.end_ns for span in spans if span.fault not in ON_THE_LOAD and span.start_ns <= since.time_ns + SLACK_NS
    ]
    return max(each.start_ns, max([since.time_ns, *unaware]) + SLACK_NS)


def _ends(each: TooFew, changes: Sequence[IsrChange], looks: Sequence[Sighting]) -> Iterator[int]:
    for change in changes:
        if change.place == each.place and change.time_ns >= each.start_ns:
            has_grown = change.leader_epoch == each.leader_epoch and change.members >= each.wanted
            if has_grown or change.leader_epoch > each.leader_epoch:
                yield change.time_ns
    later = next((look for look in looks if look.epoch > each.leader_epoch), None)
    if later is not None:
        yield (later.before_ns or 0) - SLACK_NS
