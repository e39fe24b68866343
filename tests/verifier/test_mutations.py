"""What breaks stories breaks them: a mutation that a story allows always does something, whatever came before it."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from tests.support.stories import clean
from tests.verifier.mutations import MUTATIONS
from tests.verifier.mutations.clients import stop_reader


@pytest.mark.parametrize("seed", range(40))
def test_what_is_possible_changes_the_story(seed: int) -> None:
    """One mutation after the other, until little is left: none that is possible fails or leaves all as it was."""
    random = Random(seed)
    size, brokers = random.randint(1, 3), random.randint(2, 3)
    story = clean(partitions=random.randint(1, 2), batches=random.randint(2, 4), size=size, brokers=brokers)
    for _ in range(25):
        mutation = random.choice([mutation for mutation in MUTATIONS if mutation.is_possible(story)])
        before = deepcopy(story)
        mutation(story, random)
        assert story != before, mutation


def test_what_is_not_there_cannot_be_broken() -> None:
    """A story without what a mutation needs does not allow it."""
    story = clean(size=1)
    story.rows["final-1"].clear()
    story.everywhere(0, list.clear)
    assert not stop_reader.is_possible(story)
    assert {mutation.__name__ for mutation in MUTATIONS if mutation.is_possible(story)} == {
        "torn_tail_above", "zombie_tail", "lower_high_watermark", "raise_log_start", "make_unavailable", "change_send",
        "acknowledge_again", "change_reads", "shrink_reservation", "change_times", "change_session", "tell_watermarks",
        "break_link", "send_again", "tell_no_offsets", "two_tails", "stop_otherwise", "index_otherwise",
        "damage_side_file",
    }  # fmt: skip
