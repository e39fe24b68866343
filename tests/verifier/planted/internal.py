"""Planted examples for the replicas of the topics that no run creates itself, each with its nearest legal neighbor.

A group has its offsets in partition 0 of ``__consumer_offsets``, in batches of one record; brokers 1 and 3 have the
same, and broker 1 is the most advanced one. Compacted logs are in
``tests/verifier/coordinators/test_internal_replicas.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.support import side_files
from tests.support.stories import Batch, Story
from tests.verifier.planted.groups import coordinated, may_lose_records, stored
from tests.verifier.planted.headers import both
from tests.verifier.planted.model import Planted

#: What the group committed; the last batch is of the last epoch.
LOG = (stored(12), stored(20), replace(stored(24), leader_epoch=2))
PLACE = "__consumer_offsets-0"
OTHER = 2


def differing(*batches: Batch, broker: int = OTHER) -> Callable[[Story], None]:
    """One broker has these batches, at the offsets that they name."""

    def plant(story: Story) -> None:
        coordinated(*LOG)(story)
        story.internal_replicas[broker, PLACE] = list(batches)

    return plant


def at(offset: int, batch: Batch, epoch: int = 1) -> Batch:
    return replace(batch, base_offset=offset, leader_epoch=epoch)


def known_to(high_watermark: int) -> Callable[[Story], None]:
    """How far broker 2 knew that the log is committed, when it stopped."""

    def plant(story: Story) -> None:
        line = {("__consumer_offsets", 0): high_watermark}
        story.side_files[OTHER, "replication-offset-checkpoint"] = lambda data: _with(data, line)

    return plant


def _with(data: bytes, line: Mapping[tuple[str, int], int]) -> bytes:
    rows = [row.split() for row in data.decode().splitlines()[2:]]
    return side_files.offsets({(topic, int(number)): int(offset) for topic, number, offset in rows} | dict(line))


def damaged(batch: Batch) -> Batch:
    return replace(batch, spoil=lambda data: data[:-1] + bytes([data[-1] ^ 1]))


FIRST, SECOND, THIRD = at(0, stored(12)), at(1, stored(20)), at(2, stored(24), 2)
FOUND = {"count": 1, "partition": 0, "offset": 1, "topic": "__consumer_offsets"}
EARLIER = "a replica of offsets that ends earlier"

PLANTED: Mapping[str, Planted] = {
    EARLIER: Planted(differing(FIRST, SECOND)),
    "a replica of offsets with another one at its end, which was not committed there": Planted(
        both(differing(FIRST, SECOND, at(2, stored(21))), known_to(2))
    ),
    "a replica of offsets with another one under the same epoch": Planted(
        both(differing(FIRST, at(1, stored(21)), THIRD), known_to(0)),
        {("internal-divergence", "different"): FOUND},
        neighbor="a replica of offsets with another one at its end, which was not committed there",
    ),
    "a replica of offsets with another one that is committed": Planted(
        differing(FIRST, SECOND, at(2, stored(21))),
        {("internal-divergence", "different"): {**FOUND, "offset": 2}},
        neighbor="a replica of offsets with another one at its end, which was not committed there",
    ),
    "a replica of offsets in which one is damaged": Planted(
        differing(FIRST, damaged(SECOND), THIRD),
        {("internal-divergence", "different"): FOUND},
        neighbor=EARLIER,
    ),
    "a replica of offsets that lacks one": Planted(
        differing(FIRST, THIRD), {("internal-divergence", "missing"): FOUND}, neighbor=EARLIER
    ),
    "a replica of offsets that lacks one, beside a topic that may lose records": Planted(
        both(differing(FIRST, THIRD), may_lose_records),
        {("internal-divergence", "missing"): FOUND},
        neighbor=EARLIER,
    ),
    "replicas of offsets that have one more than the most advanced": Planted(
        differing(FIRST, THIRD, broker=1),
        {("internal-divergence", "extra"): {**FOUND, "count": 2}},
        neighbor=EARLIER,
    ),
}
