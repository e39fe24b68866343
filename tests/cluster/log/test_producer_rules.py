"""The rules for producers hold in every order of events, and each of their conditions is needed.

``docs/producer-state.md`` tells them; the model is ``producer_model``. Where a condition is taken away, a short story
shows what goes wrong, and that the whole rule withstands the very same story.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.log.producer_model import ACTIONS, Conditions, Schedule, play

#: How often each action is drawn: most schedules must get batches to the leader, and from there to followers.
WEIGHTS = (4, 4, 8, 2, 6, 2, 1, 1, 1, 2)
LENGTH = 60
NUMBERS = 60

schedules = st.lists(
    st.tuples(
        st.sampled_from([action for action, weight in zip(ACTIONS, WEIGHTS, strict=True) for _ in range(weight)]),
        st.integers(0, NUMBERS - 1),
    ),
    max_size=LENGTH,
)

#: What is taken away -> what goes wrong, and how.
COUNTER_EXAMPLES: dict[str, tuple[Conditions, str, Schedule]] = {
    "an unknown producer begins with sequence 0": (
        Conditions(unknown_producer="kafka"),
        "hole",
        [("send", 0), ("send", 0), ("deliver", 1)],
    ),
    "an old sequence is a duplicate only if the history is complete": (
        Conditions(below_window_needs_complete_history=False),
        "lost",
        [
            *(("send", 1), ("deliver", 0), ("replicate", 1), ("replicate", 2), ("expire", 0), ("delete", 1)),
            *(("send", 1), ("send", 1), ("deliver", 1), ("deliver", 0), ("replicate", 1), ("replicate", 2)),
        ],
    ),
    "both": (
        Conditions(unknown_producer="kafka", below_window_needs_complete_history=False),
        "lost",
        [("send", 1), ("send", 1), ("deliver", 1), ("replicate", 1), ("replicate", 2), ("deliver", 0)],
    ),
    "a duplicate waits for its original": (
        Conditions(duplicates_wait_for_their_original=False),
        "lost",
        [("send", 1), ("lose answer", 0), ("retry", 7), ("deliver", 0), ("elect", 0)],
    ),
    "a later leader epoch confirms nothing": (
        Conditions(epoch_of_the_append_counts=False),
        "lost",
        [("send", 1), ("deliver", 0), ("elect", 0), ("other", 0), ("replicate", 1), ("replicate", 2)],
    ),
    "truncation takes the producers back": (
        Conditions(truncation_takes_producers_back=False),
        "lost",
        [
            *(("send", 1), ("lose answer", 0), ("elect", 0), ("other", 0), ("replicate", 1), ("replicate", 2)),
            *(("elect", 0), ("retry", 7), ("deliver", 0)),
        ],
    ),
    "a producer is remembered while a batch of it may be on its way": (
        Conditions(expiry_waits_for_copies=False),
        "doubled",
        [("send", 1), ("retry", 7), ("deliver", 0), ("expire", 0), ("deliver", 0)],
    ),
}


def drawn(seed: int) -> Schedule:
    source = random.Random(seed)
    actions = source.choices(ACTIONS, WEIGHTS, k=LENGTH)
    return [(action, source.randrange(NUMBERS)) for action in actions]


@given(schedules, st.sampled_from([1, 2, 5, 7]))
def test_nothing_is_lost_or_doubled(schedule: Schedule, in_flight: int) -> None:
    """NOT_LEADER, acceptance and retry, failover, truncation, restart, expiry and deletion, in any order."""
    assert play(schedule, Conditions(in_flight=in_flight)) is None


def test_nothing_is_lost_or_doubled_in_long_schedules() -> None:
    """200 long schedules: nothing is wrong with five batches in flight, nor with seven."""
    assert [play(drawn(seed), Conditions(in_flight=5 + 2 * (seed % 2))) for seed in range(200)] == [None] * 200


@pytest.mark.parametrize("removed", COUNTER_EXAMPLES)
def test_each_condition_is_needed(removed: str) -> None:
    """Without it the story ends badly; with it, well."""
    conditions, wrong, story = COUNTER_EXAMPLES[removed]
    assert (play(story, conditions) or "").startswith(wrong)
    assert play(story, Conditions()) is None


@pytest.mark.full
@pytest.mark.parametrize("removed", COUNTER_EXAMPLES)
def test_a_search_finds_that_each_condition_is_needed(removed: str) -> None:
    """Among random schedules there is one that goes wrong: the model can see it."""
    conditions, wrong, _ = COUNTER_EXAMPLES[removed]
    found = (play(drawn(seed), conditions) or "" for seed in range(20_000))
    assert any(what.startswith(wrong) for what in found)
