"""What was deleted on purpose: the offset below which nothing of a partition is missed.

Only what the run itself asked for excuses a deletion: DeleteRecords that is in a history (``delete``), and the
topic's own retention. A broker's journal is no witness for the broker. It says where each replica's log begins
(``log-start``), which counts only as far as a deletion was asked for: replicas carry it out at different moments. Pure
but for reading the journals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from verifier.accounts.account import HistoryAccount
from verifier.doubts import JOURNALS, Doubt
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

MOVED = "log-start"

#: The settings by which a topic deletes its oldest records, each off at -1.
RETENTION = ("retention.ms", "retention.bytes")
KEEPS_ALL = "-1"


@dataclass(frozen=True, slots=True)
class Deletions:
    """What a run was asked to delete, and where its logs begin.

    ``asked``: (topic, partition) -> the offset below which records were to go. ``begins``: (broker, topic, partition)
    -> where that replica says that its log begins. ``by_retention``: topics that delete what is old or too much by
    themselves: what lies below the start of their logs cannot be judged. ``complaint``: why ``begins`` is not known.
    ``without_offsets``: partitions with acknowledgements that came without an offset.
    """

    asked: Mapping[tuple[str, int], int] = field(default_factory=dict)
    begins: Mapping[tuple[int, str, int], int] = field(default_factory=dict)
    by_retention: frozenset[str] = frozenset()
    complaint: str | None = None
    without_offsets: frozenset[tuple[str, int]] = frozenset()

    def judged_from(self, topic: str, partition: int, log_start_offset: int) -> int:
        """The first offset whose absence is no deletion that was asked for; at most the final log start."""
        if topic in self.by_retention:
            return log_start_offset
        return min(log_start_offset, self.asked.get((topic, partition), 0))

    def compared_from(self, broker: int, topic: str, partition: int, log_start_offset: int) -> int:
        """The first offset at which a replica must have what its leader has: each may delete at another moment."""
        begins = self.begins.get((broker, topic, partition), 0)
        allowed = begins if topic in self.by_retention else self.asked.get((topic, partition), 0)
        return max(log_start_offset, min(allowed, begins))


def deletions(directory: RunDirectory, run: RunModel, accounts: Collection[HistoryAccount]) -> Deletions:
    """What the histories, the settings and the journals of all brokers say."""
    asked: dict[tuple[str, int], int] = {}
    for account in accounts:
        for place, offset in account.deleted.items():
            asked[place] = max(offset, asked.get(place, 0))
    by_retention = _by_retention(run)
    without_offsets = frozenset(place for account in accounts for place in account.partitions_without_offsets)
    begins: dict[tuple[int, str, int], int] = {}
    for broker in directory.broker_ids():
        try:
            for entry in directory.read_journal(broker):
                if entry.get("event") == MOVED:
                    replica = broker, str(entry["topic"]), int(entry["partition"])
                    begins[replica] = max(int(entry["log_start_offset"]), begins.get(replica, 0))
        except (OSError, ValueError, TypeError, KeyError) as error:
            complaint = f"the journal of broker {broker} cannot be read: {error!r}"
            return Deletions(asked, {}, by_retention, complaint, without_offsets)
    return Deletions(asked, begins, by_retention, without_offsets=without_offsets)


def _by_retention(run: RunModel) -> frozenset[str]:
    return frozenset(
        topic.name
        for topic in run.topics
        if any(topic.config.get(setting, KEEPS_ALL) != KEEPS_ALL for setting in RETENTION)
    )


def have_begun(run: RunModel, accounts: Collection[HistoryAccount]) -> bool:
    """Whether any record may have been deleted on purpose: a log begins above 0, or something was to make it so.

    If not, every replica is to have all that its leader has, whatever became of the journals.
    """
    asked = any(account.deleted for account in accounts)
    return asked or bool(_by_retention(run)) or any(final.log_start_offset > 0 for final in run.final)


def doubts(deletions: Deletions) -> list[Doubt]:
    """A journal that cannot be read: a replica that deleted more than its leader looks as if it had lost something."""
    return [] if deletions.complaint is None else [Doubt(deletions.complaint, JOURNALS)]


def complaints(deletions: Deletions, run: RunModel) -> list[str]:
    """Why deletions keep the run from being valid, though all of the evidence can be believed."""
    found = []
    trimmed = [f for f in run.final if f.log_start_offset > 0 and f.topic in deletions.by_retention]
    if trimmed:
        names = ", ".join(f"{final.topic}-{final.partition}" for final in trimmed)
        found.append(f"{names}: the topic's retention deletes records; what lay below the log's start is unknown")
    open_places = [
        f for f in run.final if f.log_start_offset > 0 and (f.topic, f.partition) in deletions.without_offsets
    ]
    if open_places:
        names = ", ".join(f"{final.topic}-{final.partition}" for final in open_places)
        found.append(f"{names}: records were deleted, and an acknowledgement without an offset may be of one of them")
    return found
