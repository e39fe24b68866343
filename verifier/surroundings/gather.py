"""Chooses the places that the report shows, and gathers the evidence around them.

Owns the choice and its bounds. Does not own how histories, replicas and logs are read (the other modules of this
package).
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from verifier.closing.wall_clock import moment
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.segments.rows import SegmentFile, find_segments
from verifier.surroundings.clients import Heard, WantedAnomalies, listen
from verifier.surroundings.journals import Logs, changes
from verifier.surroundings.links import anomaly_links, links
from verifier.surroundings.model import (
    ExampleKey,
    Moments,
    Name,
    Spot,
    SpotView,
    Stored,
    Surroundings,
    ToldSpan,
    example_key,
)
from verifier.surroundings.reached import reached
from verifier.surroundings.replicas import Replicas
from verifier.telling.anomaly_files import allowances
from verifier.verdict import CheckResult, Example, Verdict

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

#: The most places for each check that leads a card, for each of its consequences, and in total.
PER_CHECK = 3
PER_CONSEQUENCE = 1
IN_ALL = 24

#: The offsets that are shown on each side of a place, and the most of the place itself.
AROUND = 5
LONGEST_PLACE = 8


def gather(
    directory: RunDirectory, run: RunModel, verdict: Verdict, tables: Mapping[str, pa.Table] | None = None
) -> Surroundings:
    """Everything that the report shows in addition to the verdict. ``tables`` has all anomalies by check.

    Never raises: an absent or unreadable file leaves its part empty, with a note. So a verdict is never lost because
    its pictures cannot be drawn.
    """
    try:
        return _gather(directory, run, verdict, tables or {})
    except Exception as error:  # the evidence may be damaged in any way, and the verdict does not need pictures
        logger.exception("the surroundings of the anomalies could not be gathered")
        return Surroundings(notes=(f"what surrounds the anomalies could not be gathered: {error}"[:300],))


def _gather(directory: RunDirectory, run: RunModel, verdict: Verdict, tables: Mapping[str, pa.Table]) -> Surroundings:
    spots, names = _choose(verdict)
    wanted = list(_wanted(tables, verdict))
    heard = listen(sorted(directory.history_dir.glob("*.arrow")), list(spots.values()), wanted)
    segments = _segments(directory, run, {spot.name for spot in spots.values()})
    replicas, logs = Replicas(run.run_id, segments, directory.path), Logs(directory)
    places = {key: _place(run, directory.broker_ids(), spot, heard, replicas, logs) for key, spot in spots.items()}
    changed, leaders_from = changes(directory)
    topics = {topic.name for topic in run.topics}
    return Surroundings(
        places=places,
        spots=names,
        moments=tuple(_moments(wanted)),
        changes=tuple(change for change in changed if not topics or change.name[0] in topics),
        leaders_from=leaders_from,
        acks=heard.acks,
        outcomes=heard.outcomes,
        links=tuple(links(directory)),
        anomaly_files=tuple(anomaly_links(directory)),
        notes=tuple(heard.notes),
        reached=reached(directory),
        directory=str(directory.path),
    )


def _choose(verdict: Verdict) -> tuple[dict[str, Spot], dict[ExampleKey, str]]:
    """The chosen places by their key, and for each example at a chosen place the key of that place.

    Forbidden anomalies are chosen before allowed ones. The first example of a check, which leads its card, is always
    chosen first, followed by those that stand for the most anomalies. Other examples at a chosen place share it.
    """
    spots: dict[str, Spot] = {}
    names: dict[ExampleKey, str] = {}
    found = [check for check in verdict.checks.values() if check.count]
    for check in sorted(found, key=lambda each: (not each.forbidden_count, verdict.leader(each.name) is not None)):
        most = PER_CHECK if verdict.leader(check.name) is None else PER_CONSEQUENCE
        for example in _largest(check, most):
            spot = spot_of(example.found)
            if spot is not None and (spot.key in spots or len(spots) < IN_ALL):
                spots.setdefault(spot.key, spot)
    for example in (example for check in found for example in check.examples):
        spot = spot_of(example.found)
        if spot is not None and spot.key in spots:
            names[example_key(example.found)] = spot.key
    return spots, names


def _largest(check: CheckResult, most: int) -> Sequence[Example]:
    """At most ``most`` examples: the first one, then forbidden before allowed, then by the number of anomalies."""
    first, *others = check.examples
    others.sort(key=lambda each: (each.allowed is not None, -each.found.count))
    return [first, *others][:most]


def spot_of(found: Found) -> Spot | None:
    """The spot of an example: its offset and all copies of its value, or else the gap between its neighbors in the log.

    None if no offset is known.
    """
    places = {copy["offset"] for copy in found.context.get("copies", []) if "offset" in copy}
    places |= {offset for name, offset in found.detail.items() if name in _PLACES and isinstance(offset, int)}
    if found.offset is not None and found.offset >= 0:
        places.add(found.offset)
    before, after = found.context.get("stream_before"), found.context.get("stream_after")
    if not places and before:
        places.add(int(before["last_offset"]) + 1)
    elif not places and after:
        places.add(int(after["first_offset"]))
    if not places:
        return None
    length = min(max(found.example_size, 1), LONGEST_PLACE)
    chosen = sorted(places)
    chosen = chosen if len(chosen) <= 3 else [chosen[0], chosen[1], chosen[-1]]
    windows: list[tuple[int, int]] = []
    for at in chosen:
        low, high = max(0, at - AROUND), at + length - 1 + AROUND
        if windows and low <= windows[-1][1] + 2:
            windows[-1] = windows[-1][0], max(high, windows[-1][1])
        else:
            windows.append((low, high))
    return Spot(found.topic, found.partition, tuple(chosen), tuple(windows), found)


#: The entries of an anomaly's ``detail`` that are offsets to show.
_PLACES = frozenset({"first_read", "last_read", "first_log", "last_log", "after_offset"})


def _wanted(tables: Mapping[str, pa.Table], verdict: Verdict) -> Iterator[WantedAnomalies]:
    """The anomalies for which an acknowledgement can show the time, by check, partition and stream."""
    for check, table in tables.items():
        groups: dict[tuple[Name, int | None, bool], list[tuple[int, int]]] = defaultdict(list)
        columns = (table[name].to_pylist() for name in ("topic", "partition", "stream", "sequence", "offset"))
        rows = zip(*columns, table["count"].to_pylist(), allowances(check, table, verdict), strict=True)
        for topic, partition, stream, sequence, offset, count, allowed in rows:
            key = sequence if stream is not None and sequence is not None else offset
            if key is not None:
                by = stream if stream is not None and sequence is not None else None
                groups[(topic, partition), by, allowed is not None].append((key, count))
        for (name, stream, let), keyed in groups.items():
            keyed.sort()
            keys, counts = (np.array(column, dtype=np.int64) for column in zip(*keyed, strict=True))
            yield WantedAnomalies(check, name, stream, keys, counts, let)


def _moments(wanted: Sequence[WantedAnomalies]) -> Iterator[Moments]:
    """The times of the anomalies of each check; allowed anomalies are separate from the others."""
    by_check: dict[tuple[str, bool], Counter[int]] = defaultdict(Counter)
    for each in wanted:
        for at, count in zip(each.times_ns.tolist(), each.counts.tolist(), strict=True):
            if at >= 0:
                by_check[each.check, each.allowed][at] += count
    for (check, allowed), counted in by_check.items():
        times = sorted(counted)
        yield Moments(check, allowed, tuple(times), tuple(counted[at] for at in times))


def _segments(directory: RunDirectory, run: RunModel, names: set[Name]) -> list[SegmentFile]:
    if not names:
        return []
    return [
        segment
        for broker in directory.broker_ids()
        for segment in find_segments("run", run.run_id, broker, directory.node(broker))
        if (segment.topic, segment.partition) in names
    ]


def _place(run: RunModel, brokers: list[int], spot: Spot, heard: Heard, replicas: Replicas, logs: Logs) -> SpotView:
    """The evidence around one spot. The final leader's replica comes first."""
    final = next((each for each in run.final if (each.topic, each.partition) == spot.name), None)
    leader = -1 if final is None else final.leader
    brokers = sorted({leader, *final.log_end_offsets}) if final else brokers
    brokers = [leader, *(broker for broker in brokers if broker != leader)] if leader in brokers else brokers
    stored: list[Stored] = [replicas.around(spot, broker, leader=broker == leader) for broker in brokers]
    told = tuple(heard.told.get(spot.key, ()))
    own = [each.at_ns for each in told if each.how == "acknowledged" and _is_own(each, spot)]
    at_place = [
        each.at_ns for each in told
        if each.offset is not None and any(each.offset <= at < each.offset + each.values for at in spot.places)
    ]  # fmt: skip
    at_ns = min([time for time in own if time >= 0] or [time for time in at_place if time >= 0], default=None)
    at = None if at_ns is None else moment(run, at_ns)
    lines = () if at is None else logs.around(at, brokers, f"{spot.topic}-{spot.partition}")
    return SpotView(spot, told, tuple(stored), at_ns, lines)


def _is_own(told: ToldSpan, spot: Spot) -> bool:
    """Whether a claim is about the spot's own value."""
    found = spot.found
    if told.stream is None or found.stream is None or found.sequence is None:
        return False
    return told.stream == found.stream and told.sequence <= found.sequence < told.sequence + told.values
