"""How often planted defects took effect, as the brokers noted it themselves (``nodes/<broker>/defects.jsonl``).

Owns the counting. No verdict depends on it: it is how one says that a verdict found what was planted. What a defect did
to the topics that brokers keep for themselves does not count: the load is not in them, and so no check could name it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cluster.broker.internal_topics import INTERNAL_TOPICS
from verifier.evidence.run_directory import RunDirectory, read_json_lines

FIRINGS_FILE = "defects.jsonl"


@dataclass(frozen=True, slots=True)
class Fired:
    """``times`` and ``records`` are by defect: not every firing concerns records. ``unreadable``: brokers whose notes
    cannot be read."""

    times: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    unreadable: tuple[int, ...] = ()


def fired(directory: RunDirectory) -> Fired:
    """What all brokers of a run noted."""
    times: Counter[str] = Counter()
    records: Counter[str] = Counter()
    unreadable = []
    for broker in directory.broker_ids():
        try:
            for line in read_json_lines(directory.node(broker) / FIRINGS_FILE):
                defect = line["defect"]
                if line.get("topic") in INTERNAL_TOPICS:
                    continue
                times[defect] += 1
                records[defect] += line.get("count", 0)
        except (OSError, ValueError, KeyError, TypeError):
            unreadable.append(broker)
    return Fired(times, records, tuple(unreadable))
