"""What the harness itself saw of elections and did to connections: the witness that is independent of the logs. Pure

but for reading ``leaders.jsonl`` (the conductor's own looks) and ``faults.jsonl``. When an epoch began is known between
bounds; how far from them an acknowledgement may lie, to have been cut off by that election, is decided here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.effectiveness import Injected, fault_record
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunSettings

#: A client may learn of an acknowledgement, and the conductor of an election, so much late on a busy machine.
SLACK_NS = 3_000_000_000
#: What was handed over so shortly before, or after, a connection was lost may have been lost with it.
CONNECTION_NS = 2_000_000_000

#: Faults that end a broker, and with it its connections; and those that break links, by their names.
_ENDS_BROKER = frozenset({"kill-leader", "kill-follower", "kill-controller", "rolling-restart", "isolate-broker"})
_PRODUCERS_LINK = "producers-b"


class Sighting(NamedTuple):
    """The conductor saw this epoch first at ``time_ns``; at ``before_ns`` it still saw the one before (None: never)."""

    epoch: int
    before_ns: int | None
    time_ns: int


class Span(NamedTuple):
    """A fault from its injection to the end of its healing; ``connections``: it broke those of producers."""

    fault: str
    start_ns: int
    end_ns: int
    connections: bool


class EpochStart(NamedTuple):
    """What the log and the acknowledgements say of one leader epoch.

    ``earliest_ns``: a record that stands before it was not sent before then; ``latest_ns``: one that stands in it, or
    after it, was acknowledged then.
    """

    epoch: int
    start_offset: int
    earliest_ns: int | None
    latest_ns: int | None


class Election(NamedTuple):
    """An epoch began about ``about_ns``: what was acknowledged within these bounds can have been cut off by it."""

    epoch: int
    start_offset: int
    about_ns: int
    from_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class Witness:
    """``sightings`` by partition, in their order."""

    sightings: Mapping[int, Sequence[Sighting]] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()

    def saw_election(self, partition: int) -> bool:
        """Whether the conductor saw any epoch of this partition begin."""
        return any(each.before_ns is not None for each in self.sightings.get(partition, ()))

    def election(self, partition: int, start: EpochStart, settings: RunSettings) -> Election | None:
        """The election that began this epoch; None if the conductor saw none: the log alone is no witness."""
        seen = self.sightings.get(partition, ())
        after = next((each for each in seen if each.epoch >= start.epoch), None)
        if after is None or after.before_ns is None:
            return None
        latest_ns = min(after.time_ns, after.time_ns if start.latest_ns is None else start.latest_ns)
        earliest_ns = max(after.before_ns, after.before_ns if start.earliest_ns is None else start.earliest_ns)
        earliest_ns = min(earliest_ns, latest_ns)
        # a follower may be so far behind and still be elected; and a leader be dead for so long before another is
        behind_ns = settings.replica_lag_time_max_ms * 1_500_000 + SLACK_NS
        dead_ns = settings.session_timeout_ms * 1_000_000
        from_ns, until_ns = earliest_ns - dead_ns - behind_ns, latest_ns + SLACK_NS
        for span in self.spans:
            # a leader that is cut off or paused does not know of its successor, and acknowledges until it is healed
            if span.start_ns <= latest_ns + SLACK_NS and span.end_ns >= earliest_ns - dead_ns - SLACK_NS:
                from_ns, until_ns = min(from_ns, span.start_ns - behind_ns), max(until_ns, span.end_ns + SLACK_NS)
        return Election(start.epoch, start.start_offset, latest_ns, from_ns, until_ns)


def witness(directory: RunDirectory) -> Witness:
    """What the conductor left. A file that cannot be read gives none: it excuses nothing."""
    try:
        seen = sightings(directory.read_leaders())
    except (OSError, ValueError, TypeError, KeyError):
        seen = {}
    try:
        happened = fault_record(directory.read_faults(), 0).injected
    except (OSError, ValueError, TypeError):
        happened = ()
    return Witness(seen, spans(happened))


def sightings(entries: Iterable[Mapping[str, object]]) -> dict[int, list[Sighting]]:
    """The epochs of each partition, each when it was first seen. Raises ``ValueError``, ``TypeError``, ``KeyError``."""
    found: dict[int, list[Sighting]] = defaultdict(list)
    for entry in entries:
        partition, epoch, time_ns, before_ns = (
            entry[name] for name in ("partition", "leader_epoch", "time_ns", "before_ns")
        )
        if not (isinstance(partition, int) and isinstance(epoch, int) and isinstance(time_ns, int)):
            raise TypeError(f"no sighting of a leader: {entry!r:.200}")
        known = found[partition]
        if not known or epoch > known[-1].epoch:
            known.append(Sighting(epoch, before_ns if isinstance(before_ns, int) else None, time_ns))
    return dict(found)


def spans(happened: Iterable[Injected]) -> tuple[Span, ...]:
    """The faults that were injected; one without an end lasted to the end of the run."""
    return tuple(
        Span(
            each.fault,
            each.start_ns,
            2**62 if each.end_ns is None else each.end_ns,
            each.fault in _ENDS_BROKER or _PRODUCERS_LINK in each.target,
        )
        for each in happened
        if not each.skipped
    )
