"""What the oracle knows of one partition: plain lists of batches, values and history rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from verifier.evidence.run_model import FinalPartition, RunModel


class Anomaly(NamedTuple):
    """One anomaly; ``size`` is what it covers."""

    check: str
    cause: str | None
    partition: int
    stream: int | None
    sequence: int | None
    offset: int | None
    size: int = 1
    excuse: str | None = None
    epoch: int | None = None


Value = tuple[int, int]


class Slot(NamedTuple):
    """One value as it stands in a log. ``value`` None: it cannot be told whose it is."""

    offset: int
    value: Value | None
    problem: str | None  # "payload", "foreign", "run"
    sentinel: bool


@dataclass
class Batch:
    """One batch as it stands in a file."""

    segment: int
    base_offset: int
    next_offset: int
    size: int
    leader_epoch: int
    crc: int
    crc_ok: bool
    producer: tuple[int, int]
    problem: str | None
    timestamps: tuple[int, int] = (0, 0)  # base and newest
    base_sequence: int = -1
    control: bool = False
    attributes: int = 0
    position: int = 0
    is_abort: bool = False  # of a control batch
    slots: list[Slot] = field(default_factory=list)


@dataclass
class Replica:
    """One replica's files: batches in their order, and the unreadable tails as (next offset, what it is)."""

    batches: list[Batch]
    tails: list[tuple[int, str]]


@dataclass
class Evidence:
    """Everything about one judged partition."""

    final: FinalPartition
    replicas: dict[int, Replica]
    rows: list[dict[str, Any]]
    asked: int  # below this offset records were to be deleted
    begins: dict[int, int]  # where the log of each broker begins, by its own journal
    run: RunModel
    leaders: list[dict[str, Any]]  # what the conductor saw of leaders
    faults: list[dict[str, Any]]
    homes: dict[int, Path]  # the directory of each replica
    others: list[dict[str, Any]] = field(default_factory=list)  # all rows of the run
    not_owed: set[int] = field(default_factory=set)  # the offsets that readers of committed records are not owed
    clock: tuple[float, float] = (0, 0)  # by how much the wall clock went back and ahead, in ms

    @property
    def orders(self) -> list[dict[str, Any]]:
        """The faults of the run that had a replica from outside the ISR elected in this partition."""
        return [
            each
            for each in self.faults
            if "elect-unclean" in self.run.faults_requested
            and (each["fault"], each["phase"]) == ("elect-unclean", "inject")
            and each["target"].startswith(f"partition {self.final.topic}-{self.final.partition},")
            and not was_refused(each["probe"])
        ]

    def over_ns(self, order: dict[str, Any]) -> int:
        """When one of them was carried out and seen to be over; never if it was not."""
        ends = [
            each["end_ns"]
            for each in self.faults
            if each["number"] == order["number"] and each["phase"] in ("heal", "over") and each.get("healed")
        ]
        return min(ends, default=2**62) if order["probe"].get("answer") == "NONE" else 2**62

    def may_lose(self, about_ns: int, before_ns: int) -> bool:
        """Whether an election then may cut off what was committed, or, with less than acks=all, acknowledged.

        ``before_ns``: when the epoch that stands before it still stood.
        """
        settings = self.run.settings
        if settings.acks != "all" or settings.unclean_leader_election:
            return True
        if "elect-unclean" not in self.run.faults_requested:
            return True
        begun = any(about_ns >= each["probe"].get("ordered_ns", each["start_ns"]) for each in self.orders)
        return begun and not all(self.over_ns(each) < before_ns for each in self.orders)

    @property
    def orders_over(self) -> int:
        """When the last of them was over; never if one was not seen to be, or if it takes no order to lose anything."""
        if self.may_lose(-1, -1):
            return 2**62
        return max(map(self.over_ns, self.orders), default=2**62)

    @property
    def judged_from(self) -> int:
        return min(self.final.log_start_offset, self.asked)

    def is_isolated(self, row: dict[str, Any]) -> bool:
        """Whether a reader's row is of a session that is handed only what is committed."""
        whose = row["process"], row["session"]
        says = ("isolation", "member")
        return any(each["f"] in says and (each["process"], each["session"]) == whose for each in self.others)

    def start(self, broker: int) -> int:
        """From this offset on a replica must have what its leader has."""
        return max(self.final.log_start_offset, min(self.asked, self.begins.get(broker, 0)))

    def limit(self, broker: int) -> int:
        """Below this offset a replica may be compared."""
        high_watermark = self.final.high_watermark
        return (
            high_watermark if broker == self.final.leader else min(high_watermark, self.final.log_end_offsets[broker])
        )

    @property
    def brokers(self) -> list[int]:
        return sorted({self.final.leader, *self.final.log_end_offsets})

    @property
    def leader(self) -> Replica:
        return self.replicas.get(self.final.leader, Replica([], []))

    def log(self) -> Iterator[tuple[Slot, Batch]]:
        """The values of the final leader's log that are judged."""
        for batch in self.leader.batches:
            for slot in batch.slots:
                if self.final.log_start_offset <= slot.offset < self.final.high_watermark:
                    yield slot, batch

    def claims(self, f: tuple[str, ...], outcome: str) -> Iterator[tuple[Value, int | None, dict[str, Any]]]:
        """Values that rows of the history speak of, one by one."""
        for row in self.rows:
            if row["f"] in f and row["type"] == outcome and row["stream"] >= 0 and makes_sense(row):
                for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                    offset = row["first_offset"] + step if row["first_offset"] >= 0 and outcome == "ok" else None
                    if offset is None or offset >= self.judged_from:
                        yield (row["stream"], row["first_sequence"] + step), offset, row

    def acks(self) -> dict[Value, list[int | None]]:
        found = defaultdict(list)
        for value, offset, _ in self.claims(("send", "sentinel"), "ok"):
            found[value].append(offset)
        return found

    def reads(self) -> dict[Value, list[int]]:
        found = defaultdict(list)
        for value, offset, _ in self.claims(("poll",), "ok"):
            if offset is not None:
                found[value].append(offset)
        return found

    def copies(self) -> dict[Value, list[tuple[int, Batch]]]:
        found = defaultdict(list)
        for slot, batch in self.log():
            if slot.value is not None:
                found[slot.value].append((slot.offset, batch))
        return found


def was_refused(probe: dict[str, Any]) -> bool:
    """Whether an unclean election was never ordered, or in vain, and the journals have none either."""
    if probe.get("answer") == "nothing":
        return True
    refusals = {"ELIGIBLE_LEADERS_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"}
    answers = probe.get("all_answers") or ["unknown"]
    return {*answers} <= refusals and probe.get("elections") == 0


def makes_sense(row: dict[str, Any]) -> bool:
    """Both ranges of a row are as long as each other, and of a possible length."""
    sequences = row["last_sequence"] - row["first_sequence"]
    offsets = row["last_offset"] - row["first_offset"]
    same = row["first_offset"] < 0 or sequences == offsets
    return row["first_sequence"] >= 0 and 0 <= sequences <= 10_000_000 and same
