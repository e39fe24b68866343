"""The consumer's core against a model (schedules from seeds), and four bugs that the model must find."""

from __future__ import annotations

import pytest

from cluster.client.cluster_view import ClusterView
from cluster.client.consumer.assignment import AssignedPartition
from cluster.client.consumer.fetch_plans import AskedPosition, Fetch, Plan
from cluster.client.consumer.fetching import FetchCore
from cluster.protocol.fetch import FetchResponse
from tests.cluster.client.consumer.model_world import Violation, World

GATE_SCHEDULES = 150
FULL_SCHEDULES = 20_000
#: Within how many schedules a planted bug must be found.
PATIENCE = 300


class BelievesLateAnswers(FetchCore):
    """Planted: an answer counts although the program went elsewhere since the question."""

    def fetched(self, fetch: Fetch, answer: FetchResponse, now_ms: int) -> set[str]:
        places = {}
        for key, place in fetch.places.items():
            partition = self.assignment.find(key)
            places[key] = AskedPosition(partition.position or 0, partition.moves, place.leader_epoch)
        return super().fetched(fetch._replace(places=places), answer, now_ms)


class StepsOverErrors(FetchCore):
    """Planted: a retriable error moves the position."""

    def fetched(self, fetch: Fetch, answer: FetchResponse, now_ms: int) -> set[str]:
        stale = super().fetched(fetch, answer, now_ms)
        for key, place in fetch.places.items():
            partition = self.assignment.find(key)
            if partition.retry_ms > now_ms and partition.position == place.position:
                partition.position += 1
        return stale


class ForgetsWhatIsBuffered(FetchCore):
    """Planted: a seek leaves what was fetched at the old place."""

    def seek(self, key: tuple[str, int], offset: int, leader_epoch: int = -1) -> None:
        partition: AssignedPartition = self.assignment.find(key)
        partition.position = offset
        self.resets.forget(key)


class KeepsItsPlaceInAnotherTopic(FetchCore):
    """Planted: a topic that was created again is taken for the one before."""

    def plan(self, view: ClusterView, now_ms: int) -> Plan:
        for partition in self.assignment:
            partition.topic_id = None
        return super().plan(view, now_ms)


def test_records_come_in_order_without_hole_or_repeat() -> None:
    """Whatever the order of answers, errors, moves, deletions, seeks and pauses, of topics created again and batches
    cut in half; and in the end everything is read.
    """
    for seed in range(GATE_SCHEDULES):
        play(seed)


@pytest.mark.full
@pytest.mark.timeout(7_200)
def test_records_come_in_order_in_many_schedules() -> None:
    """The same as in the gate, in 20,000 schedules."""
    for seed in range(FULL_SCHEDULES):
        play(seed)


def play(seed: int, core_class: type[FetchCore] = FetchCore) -> None:
    try:
        World(seed, core_class).run()
    except Violation as violation:
        raise Violation(f"schedule {seed}: {violation}") from violation


@pytest.mark.parametrize(
    "core_class", [BelievesLateAnswers, StepsOverErrors, ForgetsWhatIsBuffered, KeepsItsPlaceInAnotherTopic]
)
def test_a_planted_bug_is_found(core_class: type[FetchCore]) -> None:
    """The model finds each planted bug: it is able to fail."""

    def search() -> None:
        for seed in range(PATIENCE):
            play(seed, core_class)

    with pytest.raises(Violation):
        search()
