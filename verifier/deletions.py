"""What was deleted on purpose: from the brokers' journals to the offset below which nothing of a partition is missed.

Brokers note every DeleteRecords before it takes effect (``delete-records``, ``cluster.broker.replicas``) and every move
of a log's start with its reason (``log-start``, ``cluster.broker.housekeeping``). Two things ask for a deletion: a
client, by DeleteRecords, and the topic's own settings, by time or size. Everything else, such as a follower that goes
along with its leader, only carries out what was asked for: a log that begins above it has lost the rest. Pure but for
reading the journals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import TopicSpec

ASKED, MOVED = "delete-records", "log-start"

#: Why a log start moves by itself, and the setting without which it must not. Kafka's default of the second is -1.
RETENTION = {"time": ("retention.ms", ""), "size": ("retention.bytes", "-1")}
KEEPS_ALL = "-1"


@dataclass(frozen=True, slots=True)
class Deletions:
    """``asked``: (topic, partition) -> below which offset records were to go. ``begins``: (broker, topic, partition) ->

    where that replica says that its log begins. ``complaint``: why neither is known; then nothing below a log's start
    can be judged.
    """

    asked: Mapping[tuple[str, int], int] = field(default_factory=dict)
    begins: Mapping[tuple[int, str, int], int] = field(default_factory=dict)
    complaint: str | None = None

    def judged_from(self, topic: str, partition: int, log_start_offset: int) -> int:
        """The first offset whose absence is no deletion that was asked for; at most the final log start."""
        if self.complaint is not None:
            return log_start_offset
        return min(log_start_offset, self.asked.get((topic, partition), 0))

    def compared_from(self, broker: int, topic: str, partition: int, log_start_offset: int) -> int:
        """The first offset at which a replica must have what its leader has: each may delete at another moment."""
        allowed = self.asked.get((topic, partition), 0)
        return max(log_start_offset, min(allowed, self.begins.get((broker, topic, partition), 0)))


def deletions(directory: RunDirectory, topics: Iterable[TopicSpec]) -> Deletions:
    """What the journals of all brokers say."""
    settings = {topic.name: topic.config for topic in topics}
    asked: dict[tuple[str, int], int] = {}
    begins: dict[tuple[int, str, int], int] = {}
    for broker in directory.broker_ids():
        try:
            for entry in directory.read_journal(broker):
                if entry.get("event") not in (ASKED, MOVED):
                    continue
                place = str(entry["topic"]), int(entry["partition"])
                if entry["event"] == MOVED:
                    moved = int(entry["log_start_offset"])
                    begins[broker, *place] = max(moved, begins.get((broker, *place), 0))
                wanted = _asked_for(entry, settings.get(place[0], {}))
                asked[place] = max(wanted, asked.get(place, 0))
        except (OSError, ValueError, TypeError, KeyError) as error:
            return Deletions(complaint=f"the journal of broker {broker} cannot be read: {error!r}")
    return Deletions(asked, begins)


def _asked_for(entry: Mapping[str, Any], settings: Mapping[str, str]) -> int:
    """Below which offset records were to go by this entry; 0 if it asks for nothing."""
    if entry["event"] == ASKED:
        return int(entry["to_offset"])
    setting, default = RETENTION.get(str(entry["reason"]), (None, ""))
    if setting is None or settings.get(setting, default) == KEEPS_ALL:
        return 0
    return int(entry["log_start_offset"])
