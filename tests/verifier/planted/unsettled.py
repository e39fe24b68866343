"""Planted examples of partitions whose replicas never settled, each with its nearest legal neighbor.

All are of partition 0, which has no final state: nothing is known but the bytes of its replicas. All logs are in epoch
1 and end at 25 where nothing else is said; broker 1 leads, and broker 3 is the follower that is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.support.stories import Batch, Story
from tests.verifier.planted.changes import flip, on_follower
from tests.verifier.planted.headers import both, epochs, tail
from tests.verifier.planted.model import Planted
from tests.verifier.planted.replicas import swap_in_file


def unsettled(story: Story) -> None:
    """What the last phase found."""
    story.partitions[0].status = "unavailable: log end offsets differ"


def lag(story: Story) -> None:
    """A replica has only the first three batches."""
    on_follower(story, lambda batches: batches.__delitem__(slice(3, None)))


def uncut(behind: int) -> Callable[[Story], None]:
    """At 3 a replica has what the leader of epoch 1 wrote, others what the one of epoch 2 did; all else is of epoch 3.

    ``behind``: how many of the batches that follow it has.
    """

    def change_batch(batches: list[Batch]) -> None:
        batches[1] = replace(batches[1], leader_epoch=1, values=((2, 70), (2, 71), (2, 72)))
        del batches[2 + behind :]

    return both(epochs(1, 2, 3), lambda story: on_follower(story, change_batch), unsettled)


def damaged(story: Story) -> None:
    """At 25 the two have a batch of one epoch, and one of them is damaged."""
    place = story.partitions[0]
    place.replicas[1].append(Batch(25, ((1, 70),)))
    place.replicas[2].append(Batch(25, ((1, 70),), spoil=flip(3)))


def cut_off_at_the_start(story: Story) -> None:
    """A replica has deleted its first batches."""
    on_follower(story, lambda batches: batches.__delitem__(slice(0, 2)))


LAGS = "a replica lags, and nothing settled"
UNCUT = "an old tail that was not cut off, and nothing settled"
GROW = "epochs that grow, and nothing settled"

PLANTED: Mapping[str, Planted] = {
    LAGS: Planted(both(lag, unsettled)),
    "a replica that deleted more, and nothing settled": Planted(both(cut_off_at_the_start, unsettled)),
    "a damaged copy, and nothing settled": Planted(both(damaged, unsettled)),
    "two leaders of two epochs, and nothing settled": Planted(both(tail(1, 1, 70), tail(2, 2, 71), unsettled)),
    "two leaders of one epoch, and nothing settled": Planted(
        both(tail(1, 1, 70), tail(2, 1, 71), unsettled),
        {("split-brain", None): {"count": 1, "size": 2, "offset": 25}},
        neighbor="two leaders of two epochs, and nothing settled",
    ),
    UNCUT: Planted(uncut(0)),
    "an old tail that was not cut off, and what follows": Planted(
        uncut(1), {("log-divergence", "before"): {"count": 1, "size": 1, "offset": 6}}, neighbor=UNCUT
    ),
    GROW: Planted(both(epochs(1, 2, 2, 5), unsettled)),
    "an epoch that was over, and nothing settled": Planted(
        both(epochs(1, 2, 1, 2), unsettled), {("epoch-regression", None): {"count": 3, "offset": 6}}, neighbor=GROW
    ),
    "a file out of order, and nothing settled": Planted(
        both(swap_in_file, unsettled), {("log-reorder", "offsets"): {"count": 1, "offset": 3}}, neighbor=LAGS
    ),
}
